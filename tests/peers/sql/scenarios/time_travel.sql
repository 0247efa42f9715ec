-- Time travel: by id, time, branch and tag; names with selectors; incremental reads.
-- runs: v1 v3

-- name: version as of
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT * FROM $t VERSION AS OF $s1;
SELECT * FROM $t FOR VERSION AS OF $s1;
SELECT * FROM $t FOR SYSTEM_VERSION AS OF $s2;
SELECT * FROM $t VERSION AS OF '$s1';
SELECT * FROM $t VERSION AS OF 12345;
SELECT * FROM $t.snapshot_id_$s1;
SELECT * FROM $t.snapshot_id_12345;

-- name: timestamp as of
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT * FROM $t TIMESTAMP AS OF '$at1';
SELECT * FROM $t TIMESTAMP AS OF TIMESTAMP'$at1';
SELECT * FROM $t FOR SYSTEM_TIME AS OF TIMESTAMP'$at1';
SELECT * FROM $t TIMESTAMP AS OF timestamp_millis($ms1);
SELECT * FROM $t TIMESTAMP AS OF '2000-01-01 00:00:00';
SELECT * FROM $t TIMESTAMP AS OF '2999-01-01 00:00:00';
SELECT * FROM $t TIMESTAMP AS OF 'no time';
SELECT * FROM $t TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY;
SELECT * FROM $t.at_timestamp_$ms1;

-- name: both at once
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
SELECT * FROM $t.snapshot_id_$s1 VERSION AS OF $s1;
SELECT * FROM $t.branch_b VERSION AS OF $s1;
SELECT * FROM $t.at_timestamp_$ms1 TIMESTAMP AS OF '$at1';
SELECT * FROM $t VERSION AS OF $s1 TIMESTAMP AS OF '$at1';

-- name: in joins and subqueries
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id = 1;
SELECT n.id, o.s AS old, n.s AS new FROM $t n JOIN $t VERSION AS OF $s1 o ON n.id = o.id WHERE n.s <> o.s;
SELECT count(*) FROM (SELECT * FROM $t VERSION AS OF $s1 EXCEPT SELECT * FROM $t);
INSERT INTO $t SELECT id + 10, s FROM $t VERSION AS OF $s1;
WITH o AS (SELECT * FROM $t VERSION AS OF $s1) SELECT max(s) FROM o;

-- name: filters on a renamed column
-- runs: v1 v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
DELETE FROM $t WHERE id = 2;
ALTER TABLE $t RENAME COLUMN s TO z;
SELECT * FROM $t VERSION AS OF $s1 WHERE s = 'b';
SELECT * FROM $t VERSION AS OF $s1 WHERE z = 'b';
SELECT * FROM $t VERSION AS OF $s2;
SELECT * FROM $t WHERE z = 'a';

-- name: a column that was dropped and added
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
ALTER TABLE $t DROP COLUMN s;
ALTER TABLE $t ADD COLUMN s INT;
INSERT INTO $t VALUES (2, 7);
SELECT * FROM $t VERSION AS OF $s1;
SELECT s FROM $t VERSION AS OF $s2;
CALL lake.system.rollback_to_snapshot('$t', $s1);
SELECT * FROM $t;

-- name: partitions that changed
-- runs: v1 v2
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
ALTER TABLE $t DROP PARTITION FIELD p;
INSERT INTO $t VALUES (3, 'c');
SELECT * FROM $t VERSION AS OF $s1 WHERE p = 'a';
SELECT count(*) FROM $t VERSION AS OF $s1;

-- name: a snapshot that is gone
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');
SELECT * FROM $t VERSION AS OF $s1;
SELECT * FROM $t TIMESTAMP AS OF '$at1';

-- name: an empty table
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
SELECT * FROM $t VERSION AS OF 1;
SELECT * FROM $t TIMESTAMP AS OF '2999-01-01';
SELECT * FROM $t VERSION AS OF 'main';
SELECT * FROM $t.branch_main;

-- name: a replaced table
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE OR REPLACE TABLE $t USING iceberg $props AS SELECT 'x' AS other;
SELECT * FROM $t VERSION AS OF $s1;
SELECT id FROM $t VERSION AS OF $s1 WHERE s = 'a';
CALL lake.system.rollback_to_snapshot('$t', $s1);
CALL lake.system.set_current_snapshot('$t', $s1);
SELECT * FROM $t;

-- name: rows that were deleted by position
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
DELETE FROM $t WHERE id = 1;
ALTER TABLE $t RENAME COLUMN s TO z;
DELETE FROM $t WHERE z = 'b';
SELECT * FROM $t VERSION AS OF $s1 WHERE s = 'b';
SELECT s FROM $t VERSION AS OF $s2;
SELECT z FROM $t;

-- name: insert from the past
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
DELETE FROM $t WHERE id = 1;
INSERT INTO $t SELECT id + 100 FROM $t VERSION AS OF $s1;
INSERT INTO $t SELECT * FROM $t.snapshot_id_$s1 WHERE id NOT IN (SELECT id FROM $t);
INSERT OVERWRITE $t SELECT * FROM $t VERSION AS OF $s1;
CREATE TABLE $db.u USING iceberg $props AS SELECT * FROM $t VERSION AS OF $s2;

-- name: versions that are no versions
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
SELECT * FROM $t VERSION AS OF 1;
SELECT * FROM $t VERSION AS OF '';
SELECT * FROM $t VERSION AS OF NULL;
SELECT * FROM $t TIMESTAMP AS OF 'yesterday';
SELECT * FROM $t TIMESTAMP AS OF NULL;
SELECT * FROM $t TIMESTAMP AS OF DATE'2001-01-01';
SELECT * FROM $t.snapshot_id_1;
