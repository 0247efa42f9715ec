-- WRITE ORDERED BY and DISTRIBUTED BY, and what they make of the layout.
-- runs: v2

-- name: ordered
-- runs: v1 v2 v3
CREATE TABLE $t (id INT, c STRING, ts TIMESTAMP) USING iceberg PARTITIONED BY (c) $props;
ALTER TABLE $t WRITE ORDERED BY c, bucket(16, id), id;
ALTER TABLE $t WRITE ORDERED BY id DESC, c ASC;
ALTER TABLE $t WRITE ORDERED BY id ASC NULLS LAST, days(ts) DESC NULLS FIRST;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 'a', NULL), (1, 'a', NULL), (NULL, 'a', NULL) AS v(id, c, ts);

-- name: locally ordered and unordered
CREATE TABLE $t (id INT, c STRING) USING iceberg PARTITIONED BY (c) $props;
ALTER TABLE $t WRITE LOCALLY ORDERED BY id;
ALTER TABLE $t WRITE UNORDERED;
ALTER TABLE $t WRITE DISTRIBUTED BY PARTITION;
ALTER TABLE $t WRITE DISTRIBUTED BY PARTITION ORDERED BY id;
ALTER TABLE $t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC;
ALTER TABLE $t WRITE LOCALLY ORDERED BY id DISTRIBUTED BY PARTITION;
ALTER TABLE $t WRITE UNORDERED DISTRIBUTED BY PARTITION;

-- name: orders that are wrong
CREATE TABLE $t (id INT, c STRING, s STRUCT<x:INT>, l ARRAY<INT>) USING iceberg $props;
ALTER TABLE $t WRITE ORDERED BY none;
ALTER TABLE $t WRITE ORDERED BY l;
ALTER TABLE $t WRITE ORDERED BY days(id);
ALTER TABLE $t WRITE ORDERED BY s.x;
ALTER TABLE $t WRITE ORDERED BY id, id;
ALTER TABLE $t WRITE DISTRIBUTED BY PARTITION;

-- name: names in another case
CREATE TABLE $t (Id INT, c STRING) USING iceberg $props;
ALTER TABLE $t WRITE ORDERED BY ID;
SET spark.sql.caseSensitive=true;
ALTER TABLE $t WRITE ORDERED BY C;
ALTER TABLE $t WRITE ORDERED BY c;

-- name: a sorted table keeps its rows
-- runs: v2-cow v3-mor
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
ALTER TABLE $t WRITE ORDERED BY id NULLS LAST;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'c'), (NULL, 'n'), (1, 'a'), (2, 'b') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id >= 2;
MERGE INTO $t t USING (SELECT 0 AS id, 'z' AS s UNION ALL SELECT 1, 'm') q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM $t WHERE id IS NULL;

-- name: modes of distribution
-- runs: v2
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props('write.distribution-mode'='none');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS v(id, p);
ALTER TABLE $t SET TBLPROPERTIES ('write.distribution-mode'='hash');
INSERT INTO $t VALUES (4, 'a'), (5, 'b'), (6, 'a');
ALTER TABLE $t SET TBLPROPERTIES ('write.distribution-mode'='range');
INSERT INTO $t VALUES (7, 'a'), (8, 'b'), (9, 'a');
-- differs: outcome | choice | a property with a value that means nothing is refused when it is set; Java refuses the statements that use it
ALTER TABLE $t SET TBLPROPERTIES ('write.distribution-mode'='wrong');
-- differs: outcome | choice | a property with a value that means nothing is refused when it is set; Java refuses the statements that use it
INSERT INTO $t VALUES (10, 'a');

-- name: fanout and clustered
-- runs: v2
CREATE TABLE $t (id INT, p INT) USING iceberg PARTITIONED BY (p) $props('write.distribution-mode'='none', 'write.spark.fanout.enabled'='true');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1), (2, 2), (3, 1) AS v(id, p);
ALTER TABLE $t SET TBLPROPERTIES ('write.spark.fanout.enabled'='false');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 1), (5, 2), (6, 1) AS v(id, p);
SELECT partition.p, record_count FROM $t.files;

-- name: orders by transforms
-- runs: v3
CREATE TABLE $t (id INT, s STRING, ts TIMESTAMP, st STRUCT<x:INT>) USING iceberg $props;
ALTER TABLE $t WRITE ORDERED BY days(ts) DESC NULLS LAST, truncate(3, s), st.x;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'abc', TIMESTAMP'2024-01-01 00:00:00', named_struct('x', 2)), (2, NULL, NULL, NULL) AS v(id, s, ts, st);
ALTER TABLE $t WRITE ORDERED BY hours(ts), years(ts);
ALTER TABLE $t DROP COLUMN ts;
ALTER TABLE $t WRITE UNORDERED;
ALTER TABLE $t DROP COLUMN ts;

-- name: modes for each kind of change
-- runs: v2-mor
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props('write.delete.distribution-mode'='none', 'write.update.distribution-mode'='range', 'write.merge.distribution-mode'='hash');
INSERT INTO $t SELECT CAST(id AS INT), CAST(id % 3 AS STRING) FROM range(0, 9, 1, 3);
DELETE FROM $t WHERE id = 4;
UPDATE $t SET p = 'u' WHERE id < 2;
MERGE INTO $t t USING (SELECT 8 AS id UNION ALL SELECT 10) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = 'm' WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'n');
SELECT partition.p, sum(record_count) FROM $t.data_files GROUP BY partition.p;
