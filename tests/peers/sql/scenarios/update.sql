-- UPDATE: conditions, assignments, nested fields, subqueries, partitions, branches.
-- runs: v2-cow v3-mor

-- name: set one column by a condition
-- runs: v1-cow v2-cow v2-mor v3-cow v3-mor
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (3, NULL) AS v(id, dep);
UPDATE $t SET dep = 'sw' WHERE id = 2;

-- name: an empty table
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
UPDATE $t SET dep = 'x' WHERE id IN (1);
UPDATE $t SET id = -1;

-- name: rows that do not exist
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
UPDATE $t SET id = -1 WHERE id > 10;

-- name: all rows without a condition
-- runs: v1-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
UPDATE $t SET id = -1;

-- name: an alias for the target
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
UPDATE $t AS u SET u.dep = 'x' WHERE u.id = 1;
UPDATE $t u SET dep = concat(u.dep, '!') WHERE u.dep LIKE 'h%';

-- name: assignments in another order than the columns
CREATE TABLE $t (id INT, c1 INT, c2 INT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 11, 111), (2, 22, 222) AS v(id, c1, c2);
UPDATE $t SET `c2` = c2 - 2, c1 = `c1` - 1 WHERE id <=> 1;
UPDATE $t SET c1 = c2, c2 = c1 WHERE id = 2;

-- name: null conditions
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (0, CAST(NULL AS STRING)), (1, 'hr'), (2, 'hw') AS v(id, dep);
UPDATE $t SET dep = 'invalid' WHERE dep <> NULL;
UPDATE $t SET dep = 'invalid' WHERE dep = NULL;
UPDATE $t SET dep = 'none' WHERE dep IS NULL;
UPDATE $t SET dep = 'safe' WHERE dep <=> 'hr';
UPDATE $t SET dep = 'x' WHERE NULL;

-- name: in and not in
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
UPDATE $t SET id = 100 WHERE id IN (1, NULL);
UPDATE $t SET id = -1 WHERE id NOT IN (2, NULL);
UPDATE $t SET id = -2 WHERE id NOT IN (2);

-- name: fields of a struct
CREATE TABLE $t (id INT, s STRUCT<c1:INT, c2:STRUCT<a:ARRAY<INT>, m:MAP<STRING, STRING>>>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('c1', 2, 'c2', named_struct('a', array(1, 2), 'm', NULL)));
UPDATE $t SET s.c1 = -1;
UPDATE $t SET s.c2.m = map('k', 'v'), s.c2.a = array(-1);
UPDATE $t SET s.c1 = NULL, s.c2 = NULL;
UPDATE $t SET s = named_struct('c1', 10, 'c2', named_struct('a', NULL, 'm', NULL));

-- name: a field of a null struct
CREATE TABLE $t (id INT, s STRUCT<n1:INT, n2:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, NULL), (2, named_struct('n1', 5, 'n2', 6));
UPDATE $t SET s.n1 = -1;

-- name: values that are cast to the column
CREATE TABLE $t (id INT, l BIGINT, d DOUBLE, c DECIMAL(10, 2), s STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 1, 1.5, 2.25, 'a'), (2, 9007199254740993, 2.5, 3.75, 'b');
UPDATE $t SET l = 5.0D WHERE id = 1;
UPDATE $t SET c = 7 WHERE id = 2;
UPDATE $t SET d = 3 WHERE id = 1;
UPDATE $t SET c = 1.239 WHERE id = 1;
UPDATE $t SET s = 12 WHERE id = 1;

-- name: values that do not fit
CREATE TABLE $t (id INT NOT NULL, b TINYINT, s STRUCT<x:INT NOT NULL>) USING iceberg TBLPROPERTIES ('format-version'='2');
UPDATE $t SET id = NULL;
UPDATE $t SET id = 'not a number';
UPDATE $t SET s = named_struct('x', NULL);
UPDATE $t SET s = named_struct('y', 1);
UPDATE $t SET s.x = 'text';

-- name: values that do not fit, strictly
-- set: spark.sql.storeAssignmentPolicy=STRICT
CREATE TABLE $t (id INT NOT NULL, l BIGINT, s STRUCT<x:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, 2L, named_struct('x', 1));
UPDATE $t SET id = CAST(5 AS BIGINT);
UPDATE $t SET l = 5;
UPDATE $t SET id = '5';
UPDATE $t SET s.x = 5L;
UPDATE $t SET id = NULL;

-- name: the same column twice
CREATE TABLE $t (id INT, s STRUCT<x:INT, y:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('x', 1, 'y', 2));
UPDATE $t SET id = 1, id = 2;
UPDATE $t SET s.x = 1, s.x = 2;
UPDATE $t SET s.x = 1, s = named_struct('x', 1, 'y', 1);
UPDATE $t SET s.x = s.y, s.y = s.x;

-- name: columns that do not exist
CREATE TABLE $t (id INT, a ARRAY<STRUCT<x:INT>>, m MAP<STRING, INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, array(named_struct('x', 1)), map('k', 1));
UPDATE $t SET none = 1;
UPDATE $t SET a.x = array(2);
UPDATE $t SET m.k = 2;
UPDATE $t SET id = none;
UPDATE $t SET id = 2 WHERE none = 1;

-- name: a condition that is not deterministic
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS dep;
UPDATE $t SET id = -1 WHERE id = 1 AND rand() > 0.5;

-- name: in a subquery
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (0), (1), (NULL) AS v(value);
UPDATE $t SET id = 10 WHERE id IN (SELECT value FROM $db.u);
UPDATE $t SET id = 20 WHERE id IS NULL OR id IN (SELECT value + 2 FROM $db.u);
UPDATE $t SET dep = 'x' WHERE id NOT IN (SELECT value FROM $db.u WHERE value IS NOT NULL);
UPDATE $t SET dep = 'y' WHERE id NOT IN (SELECT value FROM $db.u);

-- name: in a subquery of two columns
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'no') AS v(i, d);
UPDATE $t SET dep = 'x', id = -1 WHERE (id, dep) IN (SELECT i, d FROM $db.u);

-- name: a subquery of the table itself
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hr'), (3, 'hw') AS v(id, dep);
UPDATE $t SET dep = 'max' WHERE id IN (SELECT max(id) FROM $t);
UPDATE $t SET dep = 'x' WHERE id = (SELECT min(id) FROM $t WHERE dep = 'hr');

-- name: exists and not exists
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (NULL) AS v(value);
UPDATE $t x SET id = -1 WHERE EXISTS (SELECT 1 FROM $db.u s WHERE s.value = x.id);
UPDATE $t x SET dep = 'n', id = -2 WHERE NOT EXISTS (SELECT 1 FROM $db.u s WHERE s.value + 1 = x.id);

-- name: a scalar subquery as a value
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (7), (8) AS v(value);
UPDATE $t SET id = (SELECT max(value) FROM $db.u) WHERE dep = 'hr';

-- name: a scalar subquery in the condition
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (NULL, 'hr') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (100), (NULL) AS v(value);
UPDATE $t SET id = -1 WHERE id <= (SELECT min(value) FROM $db.u);

-- name: the column of a partition
-- runs: v1-cow v2-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw'), (3, 'hr') AS v(id, dep);
UPDATE $t SET dep = 'sw' WHERE dep = 'hr' AND id = 1;
UPDATE $t SET dep = NULL WHERE id = 2;
UPDATE $t SET dep = 'it' WHERE dep IS NULL;

-- name: the source column of a transform
CREATE TABLE $t (id INT, ts TIMESTAMP, s STRING) USING iceberg PARTITIONED BY (days(ts), truncate(2, s), bucket(4, id)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 23:00:00', 'abc'), (2, TIMESTAMP'2020-01-02 00:00:00', 'abd'), (3, NULL, NULL) AS v(id, ts, s);
UPDATE $t SET ts = ts + INTERVAL 2 HOURS WHERE s LIKE 'ab%';
UPDATE $t SET s = 'zz', id = id + 10 WHERE ts IS NULL;

-- name: a condition on a transform's source
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (months(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-31 12:00:00'), (2, TIMESTAMP'2020-02-01 00:00:00'), (3, TIMESTAMP'2021-02-01 00:00:00') AS v(id, ts);
UPDATE $t SET id = -id WHERE ts >= TIMESTAMP'2020-02-01 00:00:00' AND ts < TIMESTAMP'2020-03-01 00:00:00';
UPDATE $t SET id = 0 WHERE year(ts) = 2021;

-- name: several files, one of which has no match
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'hr');
INSERT INTO $t VALUES (10, 'hw');
UPDATE $t SET dep = 'x' WHERE id = 10;
UPDATE $t SET dep = 'y' WHERE id < 20;
UPDATE $t SET dep = 'z' WHERE id = 1;

-- name: a row again and again
-- runs: v2-mor v3-mor v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 0), (2, 0) AS v(id, n);
UPDATE $t SET n = n + 1 WHERE id = 1;
UPDATE $t SET n = n + 1 WHERE id = 1;
UPDATE $t SET n = n + 1;

-- name: a branch
-- runs: v1-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
ALTER TABLE $t CREATE BRANCH b;
UPDATE $t.branch_b SET dep = 'on branch' WHERE id = 1;
UPDATE $t SET dep = 'on main' WHERE id = 2;
SELECT * FROM $t VERSION AS OF 'b';
UPDATE $t.branch_none SET dep = 'x';

-- name: a tag cannot be changed
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr') AS v(id, dep);
ALTER TABLE $t CREATE TAG g;
UPDATE $t.tag_g SET dep = 'x';
UPDATE $t.branch_g SET dep = 'x';

-- name: names in another case
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(Id, depName);
UPDATE $t SET DEPNAME = upper(DepName) WHERE ID = 1;

-- name: expressions of many kinds
CREATE TABLE $t (id INT, a ARRAY<INT>, m MAP<STRING, INT>, d DATE, b BINARY, f FLOAT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, array(1, NULL), map('a', 1), DATE'2020-01-01', X'01', CAST(1.5 AS FLOAT)), (2, NULL, NULL, NULL, NULL, NULL) AS v(id, a, m, d, b, f);
UPDATE $t SET a = transform(a, x -> x + 1), m = map_concat(m, map('b', 2)), d = date_add(d, 1), b = concat(b, X'02'), f = f / 2 WHERE id = 1;
UPDATE $t SET a = coalesce(a, array()), f = CAST('NaN' AS FLOAT), b = X'' WHERE id = 2;
UPDATE $t SET id = CASE WHEN id = 1 THEN 10 ELSE 20 END;

-- name: a default keyword
-- runs: v2 v3
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'hr');
UPDATE $t SET dep = DEFAULT;

-- name: names of metadata columns in the condition
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
-- differs: outcome | java | Java 1.12 fails to rewrite rows by conditions on metadata columns
UPDATE $t SET id = 100 + _pos WHERE _partition.dep = 'hr';
-- differs: outcome | java | Java 1.12 fails to rewrite rows by conditions on metadata columns
UPDATE $t SET id = 7 WHERE _spec_id = 0 AND _pos = 0;

-- name: with a common table expression
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'hw') AS v(id, dep);
WITH c AS (SELECT 1 AS i) UPDATE $t SET dep = 'x' WHERE id IN (SELECT i FROM c);

-- name: lists and maps
-- runs: v2-cow
CREATE TABLE $t (id INT, l ARRAY<STRUCT<x:INT, y:STRING>>, m MAP<STRING, ARRAY<INT>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, array(named_struct('x', 1, 'y', 'a')), map('k', array(1))), (2, NULL, NULL) AS v(id, l, m);
UPDATE $t SET l = transform(l, e -> named_struct('x', e.x * 2, 'y', e.y)) WHERE id = 1;
UPDATE $t SET m = map('n', array(CAST(NULL AS INT), 2)), l = array() WHERE id = 2;
UPDATE $t SET l.x = 1;
UPDATE $t SET m['k'] = array(2);

-- name: by a join in a subquery
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20), (3, 30) AS v(id, n);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x'), (3, 'y') AS v(id, k);
CREATE TABLE $db.w USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('x', 100), ('z', 900) AS v(k, add);
UPDATE $t SET n = n + 1 WHERE id IN (SELECT u.id FROM $db.u u JOIN $db.w w ON u.k = w.k);
UPDATE $t SET n = coalesce((SELECT max(w.add) FROM $db.u u JOIN $db.w w ON u.k = w.k), 0) WHERE id = 2;

-- name: values that swap
-- runs: v1-cow
CREATE TABLE $t USING iceberg PARTITIONED BY (a) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 2), (3, NULL) AS v(a, b);
UPDATE $t SET a = b, b = a;
UPDATE $t SET b = a + b, a = b WHERE a IS NOT NULL;
SELECT * FROM $t WHERE a IS NULL;

-- name: required columns
-- runs: v2-cow
CREATE TABLE $t (id INT NOT NULL, s STRUCT<x:INT NOT NULL, y:INT>, n INT) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('x', 1, 'y', NULL), 5);
UPDATE $t SET id = NULL;
UPDATE $t SET id = n;
UPDATE $t SET s.x = NULL;
UPDATE $t SET s = NULL;
UPDATE $t SET n = NULL WHERE id = 5;

-- name: small batches and many row groups
-- runs: v3-mor
CREATE TABLE $t (id BIGINT, s STRING) USING iceberg $props('write.parquet.row-group-size-bytes'='100', 'write.parquet.page-size-bytes'='100', 'read.parquet.vectorization.batch-size'='5');
INSERT INTO $t SELECT id, CASE WHEN id % 3 = 0 THEN 'fizz' ELSE 'none' END FROM range(0, 120, 1, 1);
UPDATE $t SET s = concat(s, 'buzz') WHERE id % 5 = 0 AND s = 'fizz';
UPDATE $t SET id = -id WHERE s = 'fizzbuzz';
SELECT s, count(*), min(id) FROM $t GROUP BY s;

-- name: a table that orders its rows
-- runs: v2-cow
CREATE TABLE $t (id INT, p STRING, n INT) USING iceberg PARTITIONED BY (p) $props('write.distribution-mode'='range', 'write.update.distribution-mode'='hash');
ALTER TABLE $t WRITE ORDERED BY n DESC, id;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 5), (2, 'a', 6), (3, 'b', 7), (4, 'b', NULL) AS v(id, p, n);
UPDATE $t SET n = -n, p = 'c' WHERE n > 5;
UPDATE $t SET p = NULL WHERE n IS NULL;

-- name: decimals and their rounding
-- runs: v2-cow
CREATE TABLE $t (id INT, d DECIMAL(5, 2)) USING iceberg PARTITIONED BY (truncate(100, d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1.00), (2, 999.99) AS v(id, d);
UPDATE $t SET d = d / 3 WHERE id = 1;
UPDATE $t SET d = d + 0.005 WHERE id = 1;
UPDATE $t SET d = d * 10 WHERE id = 2;
UPDATE $t SET d = -d WHERE d > 500;
