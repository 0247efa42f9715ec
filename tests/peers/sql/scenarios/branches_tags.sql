-- Branches and tags: made, replaced, dropped, kept for a time, read and written.
-- runs: v2

-- name: create a branch
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b1;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE BRANCH b2 AS OF VERSION $s1;
SELECT name, type, snapshot_id FROM $t.refs ORDER BY name;

-- name: a branch that is kept for a time
ALTER TABLE $db.none CREATE BRANCH b;
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b1 AS OF VERSION $s1 RETAIN 10 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS;
ALTER TABLE $t CREATE BRANCH b2 WITH SNAPSHOT RETENTION 2 SNAPSHOTS;
ALTER TABLE $t CREATE BRANCH b3 WITH SNAPSHOT RETENTION 7 MINUTES;
ALTER TABLE $t CREATE BRANCH b4 RETAIN 1 HOURS;
SELECT name, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM $t.refs;

-- name: retention that is no retention
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b RETAIN;
ALTER TABLE $t CREATE BRANCH b RETAIN 3 WEEKS;
ALTER TABLE $t CREATE BRANCH b RETAIN abc DAYS;
ALTER TABLE $t CREATE BRANCH b WITH SNAPSHOT RETENTION;
ALTER TABLE $t CREATE BRANCH b RETAIN 0 DAYS;
ALTER TABLE $t CREATE BRANCH 123;
ALTER TABLE $t CREATE BRANCH `123`;
-- differs: ref.123 | choice | digits that are the name of a branch or tag mean it; Java takes them for the id of a snapshot

-- name: a branch that exists
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b RETAIN 5 DAYS;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t CREATE BRANCH IF NOT EXISTS b RETAIN 9 DAYS;
ALTER TABLE $t CREATE OR REPLACE BRANCH b RETAIN 9 DAYS;
ALTER TABLE $t REPLACE BRANCH b AS OF VERSION $s1;
ALTER TABLE $t REPLACE BRANCH b AS OF VERSION $s2 RETAIN 3 DAYS WITH SNAPSHOT RETENTION 4 SNAPSHOTS 5 DAYS;
ALTER TABLE $t CREATE OR REPLACE BRANCH c;

-- name: replace a branch that does not exist
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t REPLACE BRANCH none AS OF VERSION $s1;
ALTER TABLE $t REPLACE TAG none AS OF VERSION $s1;
ALTER TABLE $t CREATE BRANCH x AS OF VERSION 12345;
ALTER TABLE $t CREATE TAG x AS OF VERSION 12345;

-- name: replace main
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
ALTER TABLE $t REPLACE BRANCH main AS OF VERSION $s1;
SELECT * FROM $t;
ALTER TABLE $t CREATE OR REPLACE BRANCH main AS OF VERSION $s2;
ALTER TABLE $t CREATE BRANCH main;

-- name: an empty table
-- runs: v1 v2 v3
CREATE TABLE $t (id INT) USING iceberg $props;
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t CREATE OR REPLACE BRANCH b2;
ALTER TABLE $t CREATE TAG g;
ALTER TABLE $t CREATE BRANCH IF NOT EXISTS b3;
INSERT INTO $t.branch_b VALUES (1);
SELECT * FROM $t;
SELECT * FROM $t VERSION AS OF 'b';

-- name: drop a branch
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t CREATE TAG g;
ALTER TABLE $t DROP BRANCH b;
ALTER TABLE $t DROP BRANCH b;
ALTER TABLE $t DROP BRANCH IF EXISTS b;
ALTER TABLE $t DROP BRANCH g;
ALTER TABLE $t DROP BRANCH main;
ALTER TABLE $t DROP BRANCH 123;

-- name: create tags
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g1;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE TAG g2 AS OF VERSION $s1 RETAIN 10 DAYS;
ALTER TABLE $t CREATE TAG g1;
ALTER TABLE $t CREATE TAG IF NOT EXISTS g1;
ALTER TABLE $t CREATE TAG g3 WITH SNAPSHOT RETENTION 2 SNAPSHOTS;

-- name: replace tags
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g RETAIN 1 DAYS;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t VALUES (2);
ALTER TABLE $t REPLACE TAG g AS OF VERSION $s2;
ALTER TABLE $t REPLACE TAG g AS OF VERSION $s1 RETAIN 7 DAYS;
ALTER TABLE $t CREATE OR REPLACE TAG g;
ALTER TABLE $t REPLACE TAG b AS OF VERSION $s1;
ALTER TABLE $t REPLACE BRANCH g AS OF VERSION $s1;
ALTER TABLE $t CREATE BRANCH g;

-- name: drop tags
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g;
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t DROP TAG g;
ALTER TABLE $t DROP TAG g;
ALTER TABLE $t DROP TAG IF EXISTS g;
ALTER TABLE $t DROP TAG b;
ALTER TABLE $t DROP TAG main;

-- name: read by name
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t VALUES (2);
INSERT INTO $t.branch_b VALUES (3);
SELECT * FROM $t VERSION AS OF 'g';
SELECT * FROM $t.tag_g;
SELECT * FROM $t VERSION AS OF 'b';
SELECT * FROM $t.branch_b;
SELECT * FROM $t.branch_main;
SELECT * FROM $t VERSION AS OF 'none';
SELECT * FROM $t.branch_none;
-- differs: outcome | choice | a branch in the name may be read at another ref; Java refuses
SELECT * FROM $t.branch_b VERSION AS OF 'g';
SELECT a.id, b.id AS other FROM $t a JOIN $t VERSION AS OF 'b' b ON a.id = b.id;

-- name: the schema of a branch
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
ALTER TABLE $t CREATE BRANCH b;
ALTER TABLE $t CREATE TAG g;
ALTER TABLE $t DROP COLUMN s;
ALTER TABLE $t ADD COLUMN n INT;
SELECT * FROM $t VERSION AS OF 'g';
SELECT * FROM $t.branch_b;
INSERT INTO $t.branch_b VALUES (2, 5);
SELECT * FROM $t VERSION AS OF 'b';
DELETE FROM $t.branch_b WHERE n IS NULL;

-- name: a branch that goes its own way
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
ALTER TABLE $t CREATE BRANCH dev;
DELETE FROM $t.branch_dev WHERE id = 1;
UPDATE $t SET s = 'main' WHERE id = 1;
INSERT INTO $t.branch_dev VALUES (4, 'dev');
MERGE INTO $t t USING $t.branch_dev s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE;
SELECT count(*) FROM $t.branch_dev;

-- name: fast forward
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
CALL lake.system.fast_forward('$t', 'main', 'b');
SELECT * FROM $t;
CALL lake.system.fast_forward(table => '$t', branch => 'new', to => 'b');
CALL lake.system.fast_forward(table => '$t', branch => 'main', to => 'none');

-- name: fast forward that is not forward
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.fast_forward('$t', 'main', 'b');
CALL lake.system.fast_forward('$t', 'main');
CALL lake.system.fast_forward('', 'main', 'b');
CALL lake.system.fast_forward('$t', 'b', 'main');

-- name: names of refs
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH `a-b.c`;
ALTER TABLE $t CREATE TAG `with space`;
ALTER TABLE $t CREATE BRANCH B;
ALTER TABLE $t CREATE BRANCH b;
SELECT * FROM $t VERSION AS OF 'a-b.c';
INSERT INTO $t.`branch_a-b.c` VALUES (2);
SELECT * FROM $t VERSION AS OF 'with space';

-- name: a number as the name of a ref
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE TAG `1` AS OF VERSION $s1;
-- differs: outcome | choice | digits that are the name of a branch or tag mean it; Java takes them for the id of a snapshot
SELECT * FROM $t VERSION AS OF '1';
-- differs: outcome | choice | digits that are the name of a branch or tag mean it; Java takes them for the id of a snapshot
SELECT * FROM $t VERSION AS OF 1;
-- differs: ref.1 | choice | digits that are the name of a branch or tag mean it; Java takes them for the id of a snapshot

-- name: a ref across a rollback
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE TAG g;
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
SELECT * FROM $t VERSION AS OF 'g';
SELECT made_current_at IS NOT NULL, snapshot_id, is_current_ancestor FROM $t.history;

-- name: changes of rows on a branch
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
ALTER TABLE $t CREATE BRANCH dev;
DELETE FROM $t.branch_dev WHERE id = 1;
UPDATE $t.branch_dev SET s = 'x' WHERE id = 2;
MERGE INTO $t.branch_dev t USING $t s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, concat('from main ', s.s));
SELECT * FROM $t.branch_dev;
SELECT count(*) FROM $t;

-- name: a branch that does not exist
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t.branch_none VALUES (2);
DELETE FROM $t.branch_none WHERE id = 1;
UPDATE $t.branch_none SET id = 2;
MERGE INTO $t.branch_none t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;
SELECT * FROM $t.branch_none;
SELECT * FROM $t VERSION AS OF 'none';

-- name: overwrites of a branch
-- runs: v1
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
ALTER TABLE $t CREATE BRANCH dev;
INSERT OVERWRITE $t.branch_dev PARTITION (p = 'a') VALUES (10);
TRUNCATE TABLE $t.branch_dev;
INSERT INTO $t.branch_dev SELECT * FROM $t WHERE p = 'b';
SELECT * FROM $t.branch_dev;

-- name: new columns on main, rows on a branch
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH dev;
ALTER TABLE $t ADD COLUMN n INT;
INSERT INTO $t.branch_dev VALUES (2, 20);
UPDATE $t.branch_dev SET n = 10 WHERE id = 1;
SELECT id, n FROM $t.branch_dev;
SELECT * FROM $t;

-- name: tags of branches
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH dev;
INSERT INTO $t.branch_dev VALUES (2);
ALTER TABLE $t CREATE TAG g AS OF VERSION $s2;
INSERT INTO $t.branch_dev VALUES (3);
ALTER TABLE $t DROP BRANCH dev;
SELECT * FROM $t.tag_g;
SELECT count(*) FROM $t FOR VERSION AS OF 'g';

-- name: many branches of one snapshot
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH a;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_a VALUES (2);
INSERT INTO $t.branch_b VALUES (3);
CALL lake.system.fast_forward('$t', 'main', 'a');
CALL lake.system.fast_forward('$t', 'main', 'b');
SELECT * FROM $t;
SELECT name, snapshot_id FROM $t.refs ORDER BY name;

-- name: refs in other words
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG `end of year`;
INSERT INTO $t VALUES (2);
SELECT * FROM $t FOR SYSTEM_VERSION AS OF 'end of year';
SELECT * FROM $t FOR SYSTEM_VERSION AS OF $s1;
SELECT * FROM $t.`tag_end of year`;
SELECT * FROM $t FOR SYSTEM_TIME AS OF '$at1';
SELECT * FROM $t.tag_none;
