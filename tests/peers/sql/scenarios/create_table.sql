-- CREATE TABLE, CTAS, REPLACE, DROP, RENAME, SHOW, DESCRIBE.
-- runs: v1 v3

-- name: columns of every type
CREATE TABLE $t (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(38, 10), dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, s STRING, bin BINARY, st STRUCT<a:INT, b:ARRAY<STRING>>, m MAP<STRING, STRUCT<x:INT>>) USING iceberg $props;
INSERT INTO $t VALUES (true, 1, 2, 1.5, 2.5, 1234567890.0123456789, DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59', 'ü', X'00ff', named_struct('a', 1, 'b', array('x', NULL)), map('k', named_struct('x', NULL)));

-- name: small integers and texts with a length
-- runs: v2
CREATE TABLE $t (a TINYINT, b SMALLINT, c CHAR(3), d VARCHAR(5)) USING iceberg $props;
INSERT INTO $t VALUES (1, 2, 'x', 'y');
INSERT INTO $t VALUES (1, 2, 'toolong', 'y');

-- name: types that Iceberg has not
-- runs: v2 v3
CREATE TABLE $t (i INTERVAL DAY TO SECOND) USING iceberg $props;
CREATE TABLE $t (v VOID) USING iceberg $props;
CREATE TABLE $t (v VARIANT) USING iceberg $props;

-- name: required columns and comments
CREATE TABLE $t (id INT NOT NULL COMMENT 'the key', s STRUCT<x:INT NOT NULL COMMENT 'inner', y:STRING> COMMENT 'nested', a ARRAY<STRUCT<z:INT>>) USING iceberg COMMENT 'a table' $props;
DESCRIBE $t;
SHOW COLUMNS IN $t;

-- name: properties and a location
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props('p1'='2', 'read.split.target-size'='1000');
SHOW TBLPROPERTIES $t ('p1');
ALTER TABLE $t SET TBLPROPERTIES ('p1'='3', 'a.b'='c d');
ALTER TABLE $t UNSET TBLPROPERTIES ('p1');
-- differs: outcome | choice | a property that is not set is removed only with IF EXISTS, as Spark documents it
ALTER TABLE $t UNSET TBLPROPERTIES ('none');
ALTER TABLE $t UNSET TBLPROPERTIES IF EXISTS ('none');
-- differs: outcome | choice | the message names the table without its catalog
SHOW TBLPROPERTIES $t ('none');

-- name: reserved properties
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
ALTER TABLE $t SET TBLPROPERTIES ('format-version'='3');
ALTER TABLE $t SET TBLPROPERTIES ('format-version'='1');
-- differs: outcome | choice | what describes the table is no property; Java drops it without a word
ALTER TABLE $t SET TBLPROPERTIES ('uuid'='x');
ALTER TABLE $t SET TBLPROPERTIES ('current-snapshot-id'='1');
-- differs: outcome | choice | a property that is not set is removed only with IF EXISTS, as Spark documents it
ALTER TABLE $t UNSET TBLPROPERTIES ('format-version');

-- name: upgrades one by one
-- runs: v1
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a') AS v(id, p);
ALTER TABLE $t SET TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read');
DELETE FROM $t WHERE id = 1;
ALTER TABLE $t SET TBLPROPERTIES ('format-version'='3');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'a'), (4, 'a') AS v(id, p);
DELETE FROM $t WHERE id = 3;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: transforms in the singular and plural
-- runs: v1 v2
CREATE TABLE $t (a TIMESTAMP, b DATE, c INT, d STRING, e TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (year(a), month(b), bucket(4, c), truncate(3, d), hour(e)) $props;
CREATE TABLE $db.u (a TIMESTAMP, b DATE, e TIMESTAMP_NTZ, f DATE) USING iceberg PARTITIONED BY (days(a), years(b), hours(e), DAYS(f)) $props;
CREATE TABLE $db.w (c INT, d STRING) USING iceberg PARTITIONED BY (Bucket(4, c), d, truncate(d, 2)) $props;

-- name: transforms that do not fit
-- runs: v2
CREATE TABLE $t (id INT, s STRING, a ARRAY<INT>, st STRUCT<x:INT>) USING iceberg PARTITIONED BY (hours(id)) $props;
CREATE TABLE $t (id INT, s STRING, a ARRAY<INT>, st STRUCT<x:INT>) USING iceberg PARTITIONED BY (a) $props;
CREATE TABLE $t (id INT, s STRING) USING iceberg PARTITIONED BY (none) $props;
CREATE TABLE $t (id INT, s STRING) USING iceberg PARTITIONED BY (bucket(0, id)) $props;
CREATE TABLE $t (id INT, s STRING) USING iceberg PARTITIONED BY (id, id) $props;
CREATE TABLE $t (id DATE, s STRING) USING iceberg PARTITIONED BY (hours(id)) $props;
CREATE TABLE $t (id DATE, s STRING) USING iceberg PARTITIONED BY (foo(id)) $props;
CREATE TABLE $t (id TIMESTAMP) USING iceberg PARTITIONED BY (days(id), hours(id)) $props;
CREATE TABLE $db.u (id BIGINT) USING iceberg PARTITIONED BY (bucket(4, id), bucket(8, id)) $props;

-- name: a partition by a nested field
CREATE TABLE $t (id INT, s STRUCT<x:INT, d:DATE>) USING iceberg PARTITIONED BY (s.x, days(s.d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('x', 1, 'd', DATE'2020-01-01')), (2, NULL) AS v(id, s);
SELECT id FROM $t WHERE s.x = 1;
DELETE FROM $t WHERE s.x IS NULL;

-- name: it exists already
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
CREATE TABLE $t (id INT) USING iceberg $props;
CREATE TABLE IF NOT EXISTS $t (other STRING) USING iceberg $props;
CREATE TABLE $t USING iceberg AS SELECT 1 AS x;
CREATE TABLE IF NOT EXISTS $t USING iceberg AS SELECT 1 AS x;
CREATE TABLE $db.u (id INT, id INT) USING iceberg;
CREATE TABLE $db.u (id INT, Id INT) USING iceberg;

-- name: create table as select
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1L, 'a', 1.5BD, DATE'2020-01-01'), (2L, NULL, NULL, NULL) AS v(id, data, n, d);

-- name: create partitioned table as select
CREATE TABLE $t USING iceberg PARTITIONED BY (data, bucket(2, id)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1L, 'a'), (2L, 'b'), (3L, 'a') AS v(id, data);

-- name: create as select with nothing
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'x' AS s WHERE false;
INSERT INTO $t VALUES (1, 'a');

-- name: create as select of expressions and nested values
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS i, array(1, 2) AS a, named_struct('x', 1, 'y', array(named_struct('z', 's'))) AS s, map('k', 1L) AS m, current_date() = current_date() AS b, CAST(NULL AS INT) AS n;
CREATE TABLE $db.u USING iceberg $props AS SELECT count(*) AS c, sum(i) AS s FROM $t;
CREATE TABLE $db.w USING iceberg $props AS SELECT NULL AS v;

-- name: create as select with duplicate names
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS a, 2 AS a;
CREATE TABLE $t USING iceberg $props AS SELECT 1, 2 + 3;

-- name: replace as select
CREATE TABLE $t USING iceberg $props('p'='1') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
REPLACE TABLE $t USING iceberg PARTITIONED BY (part) TBLPROPERTIES ('q'='2') AS SELECT /*+ COALESCE(1) */ id, s, CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS part FROM $t;
REPLACE TABLE $t USING iceberg AS SELECT 7L AS id;
SELECT * FROM $t VERSION AS OF $s1;

-- name: replace what does not exist
-- runs: v2
REPLACE TABLE $db.none USING iceberg AS SELECT 1 AS id;
CREATE OR REPLACE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE OR REPLACE TABLE $t USING iceberg PARTITIONED BY (id) AS SELECT 2 AS id, 'x' AS s;

-- name: replace without rows
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE OR REPLACE TABLE $t (id STRING, n INT) USING iceberg;
INSERT INTO $t VALUES ('x', 1);
REPLACE TABLE $t (s STRING) USING iceberg PARTITIONED BY (truncate(2, s));

-- name: replace keeps branches and tags
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t CREATE TAG g;
CREATE OR REPLACE TABLE $t USING iceberg AS SELECT 'x' AS id;
SELECT * FROM $t VERSION AS OF 'g';

-- name: replace with the same spec and columns
-- runs: v1 v2
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t VALUES (1, 'a');
CREATE OR REPLACE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
CREATE OR REPLACE TABLE $t (p STRING, id INT) USING iceberg PARTITIONED BY (bucket(2, p)) $props;
INSERT INTO $t VALUES ('b', 2);

-- name: a replace that fails leaves the table
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE OR REPLACE TABLE $t USING iceberg AS SELECT 1 / 0 AS id;
CREATE OR REPLACE TABLE $t USING iceberg AS SELECT none FROM $t;
CREATE TABLE $db.u USING iceberg AS SELECT CAST('x' AS INT) AS id;
SHOW TABLES IN $db;

-- name: like another table
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
-- differs: outcome | choice | CREATE TABLE LIKE works where Spark parses it; Java's Spark does not
CREATE TABLE $db.u LIKE $t;

-- name: drop
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
DROP TABLE $t;
SELECT * FROM $t;
DROP TABLE $t;
DROP TABLE IF EXISTS $t;
CREATE TABLE $t (id STRING) USING iceberg $props;
DROP TABLE $t PURGE;

-- name: drop with garbage collection off
-- runs: v2
CREATE TABLE $t USING iceberg $props('gc.enabled'='false') AS SELECT 1 AS id;
DROP TABLE $t PURGE;
SELECT * FROM $t;
DROP TABLE $t;

-- name: rename
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE TABLE $db.u USING iceberg $props AS SELECT 2 AS id;
ALTER TABLE $t RENAME TO $ns.u;
ALTER TABLE $t RENAME TO $ns.w;
SELECT * FROM $db.w;
SELECT * FROM $t;
ALTER TABLE $db.none RENAME TO $ns.x;
INSERT INTO $db.w VALUES (3);
-- differs: outcome | choice | the new name may begin with the catalog; Spark takes all of it for the namespace
ALTER TABLE $db.w RENAME TO $db.y;

-- name: names with special characters
-- runs: v2
CREATE TABLE $db.`a b` (`x y` INT, `d.t` STRING, `ü` INT, `select` INT) USING iceberg PARTITIONED BY (`d.t`) $props;
INSERT INTO $db.`a b` VALUES (1, 'p', 2, 3);
SELECT `x y`, `d.t` FROM $db.`a b` WHERE `d.t` = 'p' AND `x y` = 1;
UPDATE $db.`a b` SET `x y` = 10, `select` = 0 WHERE `d.t` = 'p';
ALTER TABLE $db.`a b` RENAME COLUMN `d.t` TO `e.t`;
DELETE FROM $db.`a b` WHERE `e.t` = 'p' AND `ü` = 2;
SELECT record_count FROM $db.`a b`.files;

-- name: show and describe
-- runs: v2
CREATE TABLE $t (id INT NOT NULL, s STRING COMMENT 'text') USING iceberg PARTITIONED BY (bucket(2, id)) $props;
SHOW TABLES IN $db;
SHOW TABLES IN $db LIKE 'u*';
DESCRIBE TABLE $t;
DESCRIBE TABLE $t id;
-- differs: outcome | choice | the statement makes the same table, and is written otherwise
SHOW CREATE TABLE $t;
DESCRIBE TABLE $db.none;

-- name: gzip metadata
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props('write.metadata.compression-codec'='gzip') AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
DELETE FROM $t WHERE id = 1;

-- name: identifiers by a function
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
INSERT INTO IDENTIFIER('$t') VALUES (1);
SELECT * FROM IDENTIFIER('$t');
UPDATE IDENTIFIER('$t') SET id = 2;
DELETE FROM IDENTIFIER('$t') WHERE id = 2;

-- name: another provider
-- runs: v2
CREATE TABLE $t (id INT) USING parquet;
CREATE TABLE $db.u (id INT) USING nothing;
CREATE TABLE $db.w (id INT);

-- name: comments of tables
-- runs: v2
CREATE TABLE $t (id INT COMMENT 'it''s a key; really') USING iceberg COMMENT 'first' $props;
COMMENT ON TABLE $t IS 'second';
COMMENT ON TABLE $t IS NULL;
COMMENT ON TABLE $t IS '';
COMMENT ON TABLE $db.none IS 'x';

-- name: create partitioned by what is computed
-- runs: v3
CREATE TABLE $t USING iceberg PARTITIONED BY (days(ts), truncate(1, s)) $props AS SELECT /*+ COALESCE(1) */ id, upper(s) AS s, CAST(ts AS TIMESTAMP) AS ts FROM VALUES (1, 'ab', '2024-01-01 10:00:00'), (2, 'ac', '2024-01-02 00:00:00') AS v(id, s, ts);
CREATE OR REPLACE TABLE $t USING iceberg PARTITIONED BY (months(ts)) $props AS SELECT * FROM $t WHERE id > 1;
SELECT partition, record_count FROM $t.files;
SELECT count(*) FROM $t VERSION AS OF $s1;

-- name: replace changes properties and order
-- runs: v1
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) COMMENT 'old' $props('a'='1', 'b'='2');
ALTER TABLE $t WRITE ORDERED BY id;
INSERT INTO $t VALUES (1, 'x');
CREATE OR REPLACE TABLE $t USING iceberg COMMENT 'new' TBLPROPERTIES ('b'='3') AS SELECT 5 AS id, 'y' AS q;
SHOW TBLPROPERTIES $t ('b');
INSERT INTO $t VALUES (6, 'z');
SELECT * FROM $t;

-- name: types inside of other types
-- runs: v2
CREATE TABLE $t (a ARRAY<TINYINT>, m MAP<SMALLINT, DATE>, s STRUCT<d:DECIMAL(38, 38), t:TIMESTAMP_NTZ, b:BINARY>) USING iceberg $props;
INSERT INTO $t VALUES (array(1Y, NULL), map(1S, DATE'2024-01-01'), named_struct('d', 0.5, 't', TIMESTAMP_NTZ'2024-01-01 00:00:00', 'b', X'ff'));
CREATE TABLE $db.u (m MAP<STRUCT<a:INT>, INT>) USING iceberg $props;
CREATE TABLE $db.w (i ARRAY<INTERVAL YEAR>) USING iceberg $props;
CREATE TABLE $db.x (d DECIMAL(39, 0)) USING iceberg $props;

-- name: clauses that are not for these tables
-- runs: v2
-- differs: properties.external | choice | EXTERNAL says nothing of an Iceberg table, so it leaves nothing; Java keeps it as a property of the table
CREATE EXTERNAL TABLE $t (id INT) USING iceberg;
CREATE TABLE $t (id INT) USING iceberg CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS;
CREATE TABLE $t (id INT) USING iceberg PARTITIONED BY (p STRING);
CREATE TABLE $t (id INT GENERATED ALWAYS AS (1 + 1)) USING iceberg;
CREATE TEMPORARY TABLE $t (id INT) USING iceberg;
SHOW TABLES IN $db;
