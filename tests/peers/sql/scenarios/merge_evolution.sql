-- MERGE WITH SCHEMA EVOLUTION, and writes that bring new columns.
-- runs: v2-cow v3-mor

-- name: a source with more columns
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20) AS q(id, s, n)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;

-- name: a source with fewer columns
CREATE TABLE $t (id INT, s STRING, n INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a', 5);
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT * FROM VALUES (1, 'x'), (2, 'y') AS q(id, s)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;

-- name: a wider type
CREATE TABLE $t (id INT, n INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 5);
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT * FROM VALUES (1, 3000000000L), (2, 7L) AS q(id, n)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;

-- name: more fields in a struct
CREATE TABLE $t (id INT, s STRUCT<a:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1));
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT 1 AS id, named_struct('a', 2, 'b', 'n') AS s) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;

-- name: named columns bring nothing new
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT 1 AS id, 'x' AS s, 9 AS n) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.s;
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT 2 AS id, 'x' AS s, 9 AS n) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id, s, n) VALUES (q.id, q.s, q.n);

-- name: without the property
-- runs: v2-cow
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
MERGE WITH SCHEMA EVOLUTION INTO $t t USING (SELECT 1 AS id, 'x' AS s, 9 AS n) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;
