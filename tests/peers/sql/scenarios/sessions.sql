-- Caches, settings and statements of the session around a table.
-- runs: v2-cow v3-mor

-- name: a cached table sees changes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
CACHE TABLE $t;
SELECT * FROM $t;
INSERT INTO $t VALUES (3);
SELECT * FROM $t;
DELETE FROM $t WHERE id = 1;
SELECT * FROM $t;
UPDATE $t SET id = 20 WHERE id = 2;
SELECT count(*), max(id) FROM $t;
UNCACHE TABLE $t;

-- name: a cached query sees changes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
CACHE TABLE cached_query_rows AS SELECT id * 10 AS x FROM $t;
INSERT INTO $t VALUES (3);
SELECT * FROM cached_query_rows;
MERGE INTO $t t USING (SELECT 3 AS id) q ON t.id = q.id WHEN MATCHED THEN DELETE;
SELECT * FROM cached_query_rows;
UNCACHE TABLE cached_query_rows;
DROP VIEW cached_query_rows;

-- name: refresh
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CACHE TABLE $t;
REFRESH TABLE $t;
INSERT INTO $t VALUES (2);
REFRESH TABLE $t;
SELECT * FROM $t;

-- name: adaptive execution off
-- set: spark.sql.adaptive.enabled=false
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS v(id, p);
UPDATE $t SET id = id + 10 WHERE p = 'a' AND id > 1;
MERGE INTO $t t USING (SELECT 2 AS id, 'c' AS p UNION ALL SELECT 9, 'd') q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM $t WHERE id = 1;

-- name: case sensitivity on
-- set: spark.sql.caseSensitive=true
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a') AS v(Id, s);
SELECT id FROM $t;
UPDATE $t SET ID = 2;
UPDATE $t SET Id = 2;
DELETE FROM $t WHERE S = 'a';
MERGE INTO $t t USING (SELECT 2 AS Id, 'x' AS s) q ON t.Id = q.Id WHEN MATCHED THEN UPDATE SET *;
INSERT INTO $t (ID, s) VALUES (3, 'c');
ALTER TABLE $t DROP COLUMN S;

-- name: variables and parameters
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
DECLARE OR REPLACE VARIABLE lim INT DEFAULT 1;
SELECT id FROM $t WHERE id > lim;
DELETE FROM $t WHERE id = lim;
SET VAR lim = 2;
-- differs: outcome | choice | variables of the session may be used in UPDATE; Java's Spark does not find them
UPDATE $t SET id = lim * 10 WHERE id = lim;
INSERT INTO $t VALUES (lim);
DROP TEMPORARY VARIABLE lim;

-- name: explain
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
SELECT count(*) FROM $t WHERE id = 1;
INSERT INTO $t TABLE $t;
SELECT * FROM $t ORDER BY id;
TABLE $t;
FROM $t |> WHERE id = 1 |> SELECT id + 1 AS x;

-- name: many columns and rows
CREATE TABLE $t (id BIGINT, a INT, b STRING, c DOUBLE) USING iceberg PARTITIONED BY (bucket(3, id)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ id, CAST(id % 7 AS INT), concat('v', id), id / 3 FROM range(200);
UPDATE $t SET b = concat(b, '!') WHERE a = 3;
DELETE FROM $t WHERE id % 10 = 0;
MERGE INTO $t t USING (SELECT id, CAST(-1 AS INT) AS a, 'm' AS b, 0.5D AS c FROM range(190, 210)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT count(*), sum(id), sum(a), min(b), max(b), round(sum(c), 6) FROM $t;

-- name: a transaction of statements in a script
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
SELECT 1;
INSERT INTO $t -- a comment inside
VALUES (2);
/* before */ DELETE FROM $t /* in between */ WHERE id = /* here */ 1;

-- name: isolation levels
CREATE TABLE $t USING iceberg $props('write.delete.isolation-level'='snapshot', 'write.update.isolation-level'='snapshot', 'write.merge.isolation-level'='snapshot') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id = 1;
DELETE FROM $t WHERE id = 2;
MERGE INTO $t t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN DELETE;
-- differs: outcome | choice | a property with a value that means nothing is refused when it is set; Java refuses the statements that use it
ALTER TABLE $t SET TBLPROPERTIES ('write.delete.isolation-level'='wrong');
-- differs: outcome | choice | a property with a value that means nothing is refused when it is set; Java refuses the statements that use it
DELETE FROM $t WHERE s LIKE '%a%' OR id % 2 = 7;

-- name: loops and conditions in a script
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
BEGIN DECLARE i INT DEFAULT 0; WHILE i < 3 DO INSERT INTO $t SELECT i; SET i = i + 1; END WHILE; END;
SELECT * FROM $t;
BEGIN IF (SELECT count(*) FROM $t) > 2 THEN DELETE FROM $t WHERE id = 0; ELSE INSERT INTO $t VALUES (9); END IF; END;
SELECT * FROM $t;

-- name: a script that makes, fills, reads and changes a table
-- runs: v2 v3-mor
BEGIN
  CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
  INSERT INTO $t VALUES (1, 'a'), (2, 'b'), (3, 'c');
  FOR r AS SELECT * FROM $t ORDER BY id DO INSERT INTO $t VALUES (r.id + 10, r.s); END FOR;
  BEGIN DECLARE most INT; SET most = (SELECT max(id) FROM $t); INSERT INTO $t VALUES (most + 1, 'most'); END;
  WITH c AS (SELECT id FROM $t WHERE s <> 'a') SELECT count(*), sum(id) FROM c;
  DELETE FROM $t WHERE id = 1;
END;
SELECT * FROM $t ORDER BY id;

-- name: cases and repeats in a script
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
BEGIN REPEAT INSERT INTO $t SELECT coalesce(max(id), 0) + 1 FROM $t; UNTIL (SELECT count(*) FROM $t) >= 3 END REPEAT; END;
BEGIN
  CASE (SELECT count(*) FROM $t)
    WHEN 3 THEN MERGE INTO $t AS t USING (SELECT 2 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
    ELSE DELETE FROM $t;
  END CASE;
  SELECT id FROM $t ORDER BY id;
END;

-- name: handlers in a script
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
BEGIN
  DECLARE EXIT HANDLER FOR TABLE_OR_VIEW_NOT_FOUND INSERT INTO $t VALUES (1);
  SELECT * FROM $db.there_is_none;
  INSERT INTO $t VALUES (2);
END;
SELECT * FROM $t;
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO $t VALUES (3); SELECT 'caught'; END;
  INSERT INTO $t SELECT id / 0 FROM $t;
  INSERT INTO $t VALUES (4);
END;
SELECT * FROM $t ORDER BY id;
BEGIN INSERT INTO $t VALUES (5); INSERT INTO $t VALUES ('x'); INSERT INTO $t VALUES (6); END;
SELECT * FROM $t ORDER BY id;

-- name: names from variables in a script
-- runs: v2
CREATE TABLE $t (id INT) USING iceberg $props;
BEGIN
  DECLARE name STRING DEFAULT '$t';
  INSERT INTO IDENTIFIER(name) VALUES (1), (2);
  EXECUTE IMMEDIATE 'DELETE FROM ' || name || ' WHERE id = ?' USING 1;
  SELECT * FROM IDENTIFIER(name);
END;

-- name: immediate statements
-- runs: v3
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
EXECUTE IMMEDIATE 'INSERT INTO $t VALUES (?, ?)' USING 1, 'a';
EXECUTE IMMEDIATE 'SELECT * FROM $t WHERE id = :k' USING 1 AS k;
EXECUTE IMMEDIATE 'UPDATE $t SET s = ?' USING 'b';
SELECT * FROM $t;
EXECUTE IMMEDIATE 'DELETE FROM $t WHERE id = ?';

-- name: a temporary view after changes of columns
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
CREATE OR REPLACE TEMPORARY VIEW tmp_columns AS SELECT id, s FROM $t;
ALTER TABLE $t ADD COLUMN n INT;
SELECT * FROM tmp_columns;
ALTER TABLE $t DROP COLUMN s;
SELECT * FROM tmp_columns;
ALTER TABLE $t ADD COLUMN s INT;
SELECT id FROM tmp_columns;
DROP VIEW tmp_columns;
