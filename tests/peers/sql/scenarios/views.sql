-- Views: made, replaced, altered, dropped, over tables that change.
-- runs: v2

-- name: a view of a table
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
CREATE VIEW $db.w AS SELECT id FROM $t WHERE id > 1;
INSERT INTO $t VALUES (3, 'c');
SELECT * FROM $db.w;
DROP VIEW $db.w;
SELECT * FROM $db.w;

-- name: names of columns and comments
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE VIEW $db.w (k COMMENT 'the key', v) COMMENT 'a view' TBLPROPERTIES ('p'='1') AS SELECT id, s FROM $t;
SELECT k, v FROM $db.w;
-- differs: outcome | choice | a column of a view without a comment has none; Java shows an empty one
DESCRIBE $db.w;
SHOW TBLPROPERTIES $db.w ('p');
CREATE VIEW $db.x (a) AS SELECT id, s FROM $t;
CREATE VIEW $db.x (a, b, c) AS SELECT id, s FROM $t;
CREATE VIEW $db.x (a, a) AS SELECT id, s FROM $t;

-- name: it exists already
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
CREATE VIEW $db.w AS SELECT 2 AS id;
CREATE VIEW IF NOT EXISTS $db.w AS SELECT 2 AS id;
CREATE OR REPLACE VIEW $db.w AS SELECT id + 1 AS n FROM $t;
SELECT * FROM $db.w;
CREATE VIEW $t AS SELECT 1 AS x;
CREATE OR REPLACE VIEW $t AS SELECT 1 AS x;
CREATE TABLE $db.w (id INT) USING iceberg;

-- name: views over views
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.v1 AS SELECT id FROM $t;
CREATE VIEW $db.v2 AS SELECT id + 1 AS id FROM $db.v1;
SELECT * FROM $db.v2;
DROP VIEW $db.v1;
SELECT * FROM $db.v2;
CREATE VIEW $db.v1 AS SELECT 10 AS id;
SELECT * FROM $db.v2;

-- name: views in a circle
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.v1 AS SELECT id FROM $t;
CREATE VIEW $db.v2 AS SELECT id FROM $db.v1;
CREATE OR REPLACE VIEW $db.v1 AS SELECT id FROM $db.v2;
CREATE OR REPLACE VIEW $db.v1 AS SELECT id FROM $db.v1;
SELECT * FROM $db.v2;

-- name: temporary things inside
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE OR REPLACE TEMPORARY VIEW tmp_of_views AS SELECT id FROM $t;
CREATE VIEW $db.w AS SELECT * FROM tmp_of_views;
CREATE VIEW $db.x AS SELECT * FROM global_temp.none;
DROP VIEW tmp_of_views;

-- name: a temporary view sees new rows
-- runs: v2-cow v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
CREATE OR REPLACE TEMPORARY VIEW tmp_rows AS SELECT * FROM $t WHERE id < 100;
INSERT INTO $t VALUES (3);
SELECT * FROM tmp_rows;
DELETE FROM $t WHERE id = 1;
SELECT * FROM tmp_rows;
INSERT OVERWRITE $t VALUES (7);
SELECT * FROM tmp_rows;
DROP VIEW tmp_rows;

-- name: a table that is dropped and made again
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE VIEW $db.w AS SELECT * FROM $t;
DROP TABLE $t;
SELECT * FROM $db.w;
CREATE TABLE $t USING iceberg $props AS SELECT 'x' AS s, 5 AS id;
SELECT * FROM $db.w;

-- name: a table whose columns change
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE VIEW $db.w AS SELECT * FROM $t;
CREATE VIEW $db.x AS SELECT id, s FROM $t;
ALTER TABLE $t ADD COLUMN n INT;
SELECT * FROM $db.w;
ALTER TABLE $t RENAME COLUMN s TO z;
SELECT * FROM $db.w;
SELECT * FROM $db.x;
ALTER TABLE $t ALTER COLUMN id TYPE BIGINT;
SELECT * FROM $db.x;

-- name: properties
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
ALTER VIEW $db.w SET TBLPROPERTIES ('a'='1', 'comment'='c');
ALTER VIEW $db.w UNSET TBLPROPERTIES ('a');
ALTER VIEW $db.w UNSET TBLPROPERTIES ('none');
ALTER VIEW $db.w SET TBLPROPERTIES ('location'='x');
ALTER VIEW $db.w SET TBLPROPERTIES ('format-version'='2');

-- name: rename
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
CREATE VIEW $db.x AS SELECT 2 AS id;
ALTER VIEW $db.w RENAME TO $db.y;
SELECT * FROM $db.y;
ALTER VIEW $db.y RENAME TO $db.x;
ALTER VIEW $db.y RENAME TO $t;
ALTER VIEW $db.none RENAME TO $db.z;

-- name: another query
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE VIEW $db.w AS SELECT id FROM $t;
-- differs: outcome | choice | ALTER VIEW AS gives the view another query; Java does not know it
ALTER VIEW $db.w AS SELECT s FROM $t;
SELECT * FROM $db.w;

-- name: drop
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
DROP VIEW $db.none;
DROP VIEW IF EXISTS $db.none;
DROP TABLE $db.w;
DROP VIEW $t;
DROP VIEW $db.w;
SHOW VIEWS IN $db;

-- name: show
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w1 AS SELECT id FROM $t;
CREATE VIEW $db.w2 AS SELECT id FROM $t;
SHOW VIEWS IN $db;
SHOW VIEWS IN $db LIKE '*1';
SHOW TABLES IN $db;
-- differs: outcome | choice | names are quoted, and properties that nobody set are left out
SHOW CREATE TABLE $db.w1;

-- name: queries of many kinds
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS v(id, s);
CREATE VIEW $db.w1 AS WITH c AS (SELECT s, count(*) AS n FROM $t GROUP BY s) SELECT * FROM c WHERE n > 1;
CREATE VIEW $db.w2 AS SELECT t.id, u.id AS other FROM $t t LEFT JOIN $t u ON t.id = u.id + 1;
CREATE VIEW $db.w3 AS SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) AS r FROM $t;
CREATE VIEW $db.w4 AS SELECT * FROM $t WHERE id IN (SELECT max(id) FROM $t) UNION ALL SELECT 0, 'z';
CREATE VIEW $db.w5 AS SELECT explode(array(1, 2)) AS e, id FROM $t WHERE id = 1;
SELECT * FROM $db.w2 JOIN $db.w3 USING (id);

-- name: queries that are wrong
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT none FROM $t;
CREATE VIEW $db.w AS SELECT * FROM $db.none;
CREATE VIEW $db.w AS SELECT id, id FROM $t;
CREATE VIEW $db.w AS SELECT foo(id) AS x FROM $t;
CREATE VIEW $db.w AS SELECT id + 1 FROM $t;
SELECT * FROM $db.w;

-- name: time travel inside, and of a view
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g;
INSERT INTO $t VALUES (2);
CREATE VIEW $db.w AS SELECT * FROM $t VERSION AS OF 'g';
SELECT * FROM $db.w;
SELECT * FROM $db.w VERSION AS OF 'g';

-- name: functions of the catalog inside
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT lake.system.bucket(4, id) AS b, lake.system.truncate(2, 'abc') AS t FROM $t;
SELECT * FROM $db.w;

-- name: names without a catalog
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
USE $db;
CREATE VIEW w AS SELECT id FROM t;
USE spark_catalog.default;
SELECT * FROM $db.w;

-- name: names in another case
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS Id;
CREATE VIEW $db.w AS SELECT ID AS Key FROM $t;
SELECT key FROM $db.w WHERE KEY = 1;
SELECT * FROM $db.w;

-- name: joins and groups inside
-- runs: v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 30) AS v(id, g, n);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('a', 'first'), ('b', 'second') AS v(g, name);
CREATE VIEW $db.w AS SELECT u.name, sum(t.n) AS total, count(*) AS c FROM $t t JOIN $db.u u ON t.g = u.g GROUP BY u.name;
SELECT * FROM $db.w ORDER BY name;
INSERT INTO $t VALUES (4, 'b', 5);
SELECT total FROM $db.w WHERE name = 'second';

-- name: rows that were changed below a view
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20), (3, 30) AS v(id, n);
CREATE VIEW $db.w AS SELECT id, n * 2 AS n FROM $t WHERE n > 10;
UPDATE $t SET n = 50 WHERE id = 1;
DELETE FROM $t WHERE id = 2;
SELECT * FROM $db.w;
MERGE INTO $t t USING $db.w s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n;
SELECT * FROM $db.w;

-- name: a view as the source of changes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
CREATE VIEW $db.w AS SELECT id + 10 AS id, upper(s) AS s FROM $t;
INSERT INTO $t SELECT * FROM $db.w;
DELETE FROM $t WHERE id IN (SELECT id - 20 FROM $db.w);
UPDATE $t SET s = 'seen' WHERE EXISTS (SELECT 1 FROM $db.w w WHERE w.id = t.id + 10);
CREATE TABLE $db.u USING iceberg $props AS SELECT * FROM $db.w;

-- name: changes of views that are refused
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
INSERT INTO $db.w VALUES (2);
UPDATE $db.w SET id = 2;
ALTER TABLE $db.w ADD COLUMN x INT;
TRUNCATE TABLE $db.w;
SELECT * FROM $db.w.snapshots;

-- name: star over a view
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE VIEW $db.v1 (k, v) AS SELECT id, s FROM $t;
CREATE VIEW $db.v2 AS SELECT *, k + 1 AS next FROM $db.v1;
SELECT * FROM $db.v2;
CREATE OR REPLACE VIEW $db.v1 (k, v) AS SELECT id * 5, concat(s, s) FROM $t;
SELECT * FROM $db.v2;

-- name: windows and order inside
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 3), (2, 'a', 1), (3, 'b', 2) AS v(id, g, n);
CREATE VIEW $db.w AS SELECT id, rank() OVER (PARTITION BY g ORDER BY n) AS r FROM $t;
SELECT * FROM $db.w WHERE r = 1 ORDER BY id;
CREATE VIEW $db.x AS SELECT id FROM $t ORDER BY n DESC LIMIT 2;
SELECT * FROM $db.x;
SELECT w.id, x.id IS NOT NULL AS top FROM $db.w w LEFT JOIN $db.x x ON w.id = x.id;

-- name: views of branches and metadata tables
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
CREATE VIEW $db.w AS SELECT id FROM $t.branch_b;
CREATE VIEW $db.x AS SELECT operation, summary['added-records'] AS n FROM $t.snapshots;
INSERT INTO $t.branch_b VALUES (3);
SELECT * FROM $db.w;
SELECT * FROM $db.x;

-- name: subqueries inside
-- runs: v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 5), (2, 9) AS v(id, n);
CREATE TABLE $db.u USING iceberg $props AS SELECT 9 AS n;
CREATE VIEW $db.w1 AS SELECT id FROM $t WHERE n IN (SELECT n FROM $db.u);
CREATE VIEW $db.w2 AS SELECT id, (SELECT max(n) FROM $db.u) AS top FROM $t;
CREATE VIEW $db.w3 AS SELECT id FROM $t t WHERE NOT EXISTS (SELECT 1 FROM $db.u u WHERE u.n = t.n);
INSERT INTO $db.u VALUES (5);
SELECT * FROM $db.w1 UNION ALL SELECT id FROM $db.w2 UNION ALL SELECT id FROM $db.w3;

-- name: conflicts of names between tables and views
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE VIEW $db.w AS SELECT id FROM $t;
ALTER TABLE $t RENAME TO $ns.w;
ALTER VIEW $db.w RENAME TO $ns.t;
CREATE TABLE IF NOT EXISTS $db.w (id INT) USING iceberg;
CREATE VIEW IF NOT EXISTS $t AS SELECT 1 AS x;
DROP VIEW $db.w;
ALTER TABLE $t RENAME TO $ns.w;
SELECT * FROM $db.w;
