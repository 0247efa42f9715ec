-- Write, audit, publish: staged snapshots by id, and a branch that the session reads and writes.
-- runs: v2-cow v3-mor

-- name: a staged append that is published
-- runs: v1-cow v2-cow v3-cow
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
SET spark.wap.id=w1;
INSERT INTO $t VALUES (2);
SELECT * FROM $t;
CALL lake.system.publish_changes('$t', 'w1');
SELECT * FROM $t;

-- name: publish what is not there
-- runs: v2
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
CALL lake.system.publish_changes('$t', 'none');
CALL lake.system.publish_changes('$t');
CALL lake.system.publish_changes(table => '$t', wap_id => '');

-- name: a staged delete and update
-- runs: v2-cow v2-mor
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
SET spark.wap.id=w1;
DELETE FROM $t WHERE id = 1;
SET spark.wap.id=w2;
UPDATE $t SET s = 'x' WHERE id = 2;
SELECT * FROM $t;

-- name: a staged overwrite that is cherry-picked
-- runs: v2
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props('write.wap.enabled'='true');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SET spark.sql.sources.partitionOverwriteMode=dynamic;
SET spark.wap.id=w1;
INSERT OVERWRITE $t VALUES (3, 'a');
RESET spark.wap.id;
CALL lake.system.cherrypick_snapshot('$t', $s2);
SELECT * FROM $t;

-- name: a branch of the session
-- runs: v1-cow v2-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
ALTER TABLE $t CREATE BRANCH w;
SET spark.wap.branch=w;
INSERT INTO $t VALUES (5, 'e');
UPDATE $t SET s = 'x' WHERE id = 5;
DELETE FROM $t WHERE id = 1;
MERGE INTO $t t USING (SELECT 5 AS id, 'm' AS s UNION ALL SELECT 6, 'n') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t;
RESET spark.wap.branch;
SELECT * FROM $t;
SELECT * FROM $t VERSION AS OF 'w';

-- name: a branch of the session that does not exist yet
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
SET spark.wap.branch=w;
SELECT * FROM $t;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table
INSERT INTO $t VALUES (3);
SELECT * FROM $t;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table, and later ones count from there
DELETE FROM $t WHERE id = 1;
SELECT * FROM $t.branch_main;
-- differs: verify.java | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table

-- name: overwrites on the branch of the session
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SET spark.wap.branch=w;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table
INSERT OVERWRITE $t VALUES (3, 'c');
SET spark.sql.sources.partitionOverwriteMode=dynamic;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table, and later ones count from there
INSERT OVERWRITE $t VALUES (4, 'c');
SELECT * FROM $t;
RESET spark.wap.branch;
SELECT * FROM $t;

-- name: a metadata delete on the branch of the session
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SET spark.wap.branch=w;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table
DELETE FROM $t WHERE p = 'a';
TRUNCATE TABLE $t;
SELECT count(*) FROM $t;
RESET spark.wap.branch;
SELECT count(*) FROM $t;

-- name: another branch by name while one is set
-- runs: v2
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
SET spark.wap.branch=w;
INSERT INTO $t.branch_b VALUES (2);
DELETE FROM $t.branch_b WHERE id = 1;
SELECT * FROM $t.branch_b;
SELECT * FROM $t VERSION AS OF 'b';

-- name: id and branch at once
-- runs: v2
-- set: spark.wap.id=w1
-- set: spark.wap.branch=b
CREATE TABLE $t (id INT) USING iceberg $props('write.wap.enabled'='true');
INSERT INTO $t VALUES (1);
DELETE FROM $t WHERE id = 1;
SELECT * FROM $t;

-- name: a table without it
-- runs: v2
-- set: spark.wap.branch=b
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
UPDATE $t SET id = 3 WHERE id = 2;
DELETE FROM $t WHERE id = 1;
SELECT * FROM $t;

-- name: an id on a table without it
-- runs: v2
-- set: spark.wap.id=w1
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT * FROM $t;

-- name: publish twice
-- runs: v2
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
SET spark.wap.id=w1;
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
RESET spark.wap.id;
CALL lake.system.publish_changes('$t', 'w1');
CALL lake.system.publish_changes('$t', 'w1');
SELECT * FROM $t;

-- name: publish after main moved
-- runs: v2 v3
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
SET spark.wap.id=w1;
INSERT INTO $t VALUES (2);
RESET spark.wap.id;
INSERT INTO $t VALUES (3);
CALL lake.system.publish_changes('$t', 'w1');
SELECT * FROM $t;

-- name: partitioned writes on the branch of the session
-- runs: v1-cow v3-mor
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props('write.wap.enabled'='true');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SET spark.wap.branch=w;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table
INSERT INTO $t VALUES (3, 'a');
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table, and later ones count from there
INSERT OVERWRITE $t PARTITION (p = 'a') SELECT 10;
SELECT * FROM $t;
RESET spark.wap.branch;
SELECT * FROM $t;
-- differs: verify.java | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table

-- name: time travel while a branch is set
-- runs: v2
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
SET spark.wap.branch=w;
-- differs: counts | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table
INSERT INTO $t VALUES (2);
SELECT * FROM $t VERSION AS OF $s1;
SELECT * FROM $t VERSION AS OF 'main';
SELECT name, type FROM $t.refs;
SELECT sum(record_count) FROM $t.files;
SELECT sum(record_count) FROM $t.files VERSION AS OF 'w';
-- differs: verify.java | java | the totals in the summary of the first snapshot of a new branch of the session are those of an empty table

-- name: a merge on the branch of the session
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
ALTER TABLE $t CREATE BRANCH w;
SET spark.wap.branch=w;
MERGE INTO $t t USING $t s ON t.id = s.id AND s.id = 1 WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id + 10, s.s);
SELECT * FROM $t;
RESET spark.wap.branch;
CALL lake.system.fast_forward('$t', 'main', 'w');

-- name: subqueries read the branch of the session
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH w;
SET spark.wap.branch=w;
INSERT INTO $t VALUES (2);
SELECT max(id) FROM $t WHERE id IN (SELECT id FROM $t);
DELETE FROM $t WHERE id = (SELECT max(id) FROM $t);
SELECT * FROM $t;

-- name: a view over a table with a branch of the session
-- runs: v2
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
SET spark.wap.branch=b;
SELECT * FROM $db.w;
SELECT * FROM $t.branch_main;

-- name: staged changes of several ids
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
SET spark.wap.id=one;
INSERT INTO $t VALUES (3);
SET spark.wap.id=two;
INSERT INTO $t VALUES (4);
CALL lake.system.publish_changes('$t', 'two');
CALL lake.system.publish_changes('$t', 'one');
SELECT * FROM $t;
