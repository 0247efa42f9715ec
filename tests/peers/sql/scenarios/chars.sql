-- CHAR and VARCHAR: strings in the table, whose lengths nobody checks or pads.
-- runs: v2-cow

-- name: created, filled and read
-- runs: v1-cow v2-mor v3-cow
CREATE TABLE $t (id INT, c CHAR(3), v VARCHAR(3), s STRUCT<c:CHAR(2), v:VARCHAR(2)>, a ARRAY<CHAR(2)>, m MAP<VARCHAR(2), CHAR(2)>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 'a ', named_struct('c', 'x', 'v', 'y '), array('q'), map('k', 'v')), (2, NULL, NULL, NULL, NULL, NULL) AS q(id, c, v, s, a, m);
INSERT INTO $t VALUES (3, 'abcdef', 'abcdef', named_struct('c', 'long', 'v', 'long'), array('long'), map('long', 'long'));
SELECT id, length(c), length(v), length(s.c), length(a[0]) FROM $t;
SELECT id FROM $t WHERE c = 'a';
SELECT id FROM $t WHERE c = 'a  ';
SELECT id FROM $t WHERE v = 'a' OR s.c = 'x ';

-- name: changed
-- runs: v2-cow v3-mor
CREATE TABLE $t (id INT, c CHAR(3), v VARCHAR(3)) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 'b'), (2, 'c', 'd') AS q(id, c, v);
UPDATE $t SET c = 'too long', v = 'too long' WHERE id = 1;
UPDATE $t SET c = 'x' WHERE c = 'c';
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 'longer still', 'y'), (3, 'p', 'longer still') AS q(id, c, v)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT CAST('x' AS CHAR(5)) AS c) q ON t.c = q.c WHEN MATCHED THEN UPDATE SET t.v = q.c WHEN NOT MATCHED THEN INSERT (id, c, v) VALUES (9, q.c, CAST('z' AS VARCHAR(4)));
SELECT id, length(c), length(v) FROM $t;

-- name: of a query
CREATE TABLE $t USING iceberg $props AS SELECT CAST('a' AS CHAR(3)) AS c, CAST('b' AS VARCHAR(3)) AS v, array(CAST('c' AS CHAR(2))) AS a;
SELECT length(c), length(v), length(a[0]) FROM $t;
INSERT INTO $t SELECT CAST('longer' AS CHAR(8)), CAST('longer' AS VARCHAR(8)), array(CAST('longer' AS VARCHAR(8)));
REPLACE TABLE $t USING iceberg AS SELECT c, v, CAST('x' AS CHAR(4)) AS n FROM $t;

-- name: added and altered
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
ALTER TABLE $t ADD COLUMNS (c CHAR(2), v VARCHAR(2), n STRUCT<c:CHAR(2)>);
INSERT INTO $t VALUES (1, 'a', 'long', 'long', named_struct('c', 'long'));
ALTER TABLE $t ALTER COLUMN c TYPE VARCHAR(2);
ALTER TABLE $t ALTER COLUMN v TYPE VARCHAR(9);
ALTER TABLE $t ALTER COLUMN v TYPE STRING;
ALTER TABLE $t ALTER COLUMN s TYPE CHAR(5);
ALTER TABLE $t ALTER COLUMN id TYPE CHAR(5);
SELECT * FROM $t;
DESCRIBE $t;

-- name: partitioned by them
-- runs: v1 v3
CREATE TABLE $t (id INT, c CHAR(3), v VARCHAR(3)) USING iceberg PARTITIONED BY (c, truncate(2, v)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 'abcd'), (2, 'a  ', 'ab') AS q(id, c, v);
SELECT id FROM $t WHERE c = 'a';
INSERT OVERWRITE $t PARTITION (c = 'a') SELECT 3, 'x';
DELETE FROM $t WHERE c = 'a  ';

-- name: bad lengths
CREATE TABLE $t (c CHAR) USING iceberg $props;
CREATE TABLE $t (c VARCHAR) USING iceberg $props;
CREATE TABLE $t (c CHAR(0)) USING iceberg $props;
CREATE TABLE $t (c CHARACTER(2)) USING iceberg $props;

-- name: as strings by a setting
-- set: spark.sql.legacy.charVarcharAsString=true
CREATE TABLE $t (c CHAR(3), v VARCHAR(3)) USING iceberg $props;
INSERT INTO $t VALUES ('abcdef', 'abcdef');
SELECT CAST('a' AS CHAR(3)), c, v FROM $t;

-- name: with types kept in queries
-- set: spark.sql.preserveCharVarcharTypeInfo=true
CREATE TABLE $t (id INT, c CHAR(3), v VARCHAR(3)) USING iceberg $props;
INSERT INTO $t VALUES (1, 'abcdef', 'abcdef');
INSERT INTO $t SELECT 2, CAST('a' AS CHAR(3)), CAST('b' AS VARCHAR(3));
UPDATE $t SET c = CAST('b' AS CHAR(5)) WHERE id = 1;
CREATE TABLE $db.u USING iceberg $props AS SELECT CAST('a' AS CHAR(3)) AS c, CAST('b' AS VARCHAR(3)) AS v;
SELECT * FROM $t;
