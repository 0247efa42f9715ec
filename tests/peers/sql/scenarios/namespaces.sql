-- Namespaces, and the current one of the session.
-- runs: v2

-- name: create and drop
CREATE NAMESPACE $db.inner;
CREATE NAMESPACE $db.inner;
CREATE NAMESPACE IF NOT EXISTS $db.inner;
SHOW NAMESPACES IN $db;
CREATE TABLE $db.inner.x USING iceberg AS SELECT 1 AS id;
SELECT * FROM $db.inner.x;
DROP NAMESPACE $db.inner;
SHOW TABLES IN $db.inner;
DROP TABLE $db.inner.x;
DROP NAMESPACE $db.inner;
DROP NAMESPACE $db.inner;
DROP NAMESPACE IF EXISTS $db.inner;

-- name: properties
CREATE NAMESPACE $db.props COMMENT 'words' WITH DBPROPERTIES ('a'='1');
ALTER NAMESPACE $db.props SET PROPERTIES ('a'='2', 'b'='3');
COMMENT ON NAMESPACE $db.props IS 'other words';
DROP NAMESPACE $db.props;
ALTER NAMESPACE $db.none SET PROPERTIES ('a'='1');

-- name: the current namespace
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
USE $db;
SELECT * FROM t;
INSERT INTO t VALUES (2);
UPDATE t SET id = 10 WHERE id = 1;
DELETE FROM t WHERE t.id = 2;
CREATE TABLE u USING iceberg AS SELECT * FROM t;
SHOW TABLES;
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE;
ALTER TABLE t ADD COLUMN n INT;
DROP TABLE u;
SELECT current_catalog();

-- name: tables that do not exist
SELECT * FROM $db.none;
SELECT * FROM lake.none.none;
DESCRIBE $db.none;
ALTER TABLE $db.none ADD COLUMN x INT;
DROP TABLE $db.none;
-- differs: outcome | choice | a table needs a namespace that exists; Java's JDBC catalog does not ask
CREATE TABLE $db.nowhere.t (id INT) USING iceberg;
TRUNCATE TABLE $db.none;
REFRESH TABLE $db.none;

-- name: a namespace that is described
CREATE NAMESPACE $db.d COMMENT 'about' WITH DBPROPERTIES ('team'='x');
DROP NAMESPACE $db.d RESTRICT;
CREATE NAMESPACE IF NOT EXISTS $db.d COMMENT 'again';
DESCRIBE NAMESPACE $db.none;
DROP NAMESPACE $db.d;

-- name: drop with all that is in it
CREATE NAMESPACE $db.full;
CREATE TABLE $db.full.a USING iceberg AS SELECT 1 AS id;
CREATE TABLE $db.full.b USING iceberg AS SELECT 2 AS id;
SHOW TABLES IN $db.full;
SHOW TABLES IN $db.full LIKE 'a|c';
DROP NAMESPACE $db.full;
DROP TABLE $db.full.a;
DROP TABLE $db.full.b;
DROP NAMESPACE $db.full;

-- name: tables of one name in two namespaces
CREATE NAMESPACE $db.other;
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CREATE TABLE $db.other.t USING iceberg $props AS SELECT 2 AS id;
INSERT INTO $t SELECT id FROM $db.other.t;
USE $db.other;
SELECT * FROM t;
SELECT * FROM $t;
DROP TABLE t;
