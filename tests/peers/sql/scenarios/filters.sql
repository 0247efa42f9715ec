-- Filters that prune by partitions and bounds: the rows are the same as without pruning.
-- runs: v2

-- name: comparisons on integers in several files
-- runs: v1 v3
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, NULL) AS v(id, s);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (10, 'j'), (NULL, 'n') AS v(id, s);
SELECT id FROM $t WHERE id < 2;
SELECT id FROM $t WHERE id <= 2 AND id >= 2;
SELECT id FROM $t WHERE id > 2;
SELECT id FROM $t WHERE id <> 1;
SELECT id FROM $t WHERE NOT (id = 1);
SELECT id FROM $t WHERE id <=> NULL;
SELECT id FROM $t WHERE id IN (1, 10, 99);
SELECT id FROM $t WHERE id NOT IN (1, 10);
SELECT id FROM $t WHERE id IS NULL OR s IS NULL;
SELECT id FROM $t WHERE id BETWEEN 2 AND 10;
SELECT id FROM $t WHERE id = 2147483648;
SELECT id FROM $t WHERE id < 3000000000L;
SELECT id FROM $t WHERE id = '10';
SELECT id FROM $t WHERE id > 1.5;
SELECT id FROM $t WHERE id + 1 = 2 OR id * 2 > 15;

-- name: texts
CREATE TABLE $t (s STRING) USING iceberg PARTITIONED BY (truncate(2, s)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES ('abc'), ('abd'), ('b'), (''), (NULL), ('ü'), ('😀x'), ('a%b'), ('a_b') AS v(s);
SELECT s FROM $t WHERE s LIKE 'ab%';
SELECT s FROM $t WHERE s NOT LIKE 'ab%';
SELECT s FROM $t WHERE s LIKE 'a\\%%';
SELECT s FROM $t WHERE s LIKE '%b';
SELECT s FROM $t WHERE s LIKE 'a_c';
SELECT s FROM $t WHERE startswith(s, 'a');
SELECT s FROM $t WHERE s = '';
SELECT s FROM $t WHERE s >= 'abd' AND s < 'c';
SELECT s FROM $t WHERE s > 'z';
SELECT s FROM $t WHERE s IN ('😀x', 'ü');
SELECT s FROM $t WHERE upper(s) = 'ABC';
SELECT s FROM $t WHERE length(s) = 0;
SELECT s FROM $t WHERE s LIKE '';
SELECT s FROM $t WHERE s LIKE '%';

-- name: decimals
CREATE TABLE $t (d DECIMAL(10, 2)) USING iceberg PARTITIONED BY (truncate(100, d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1.00), (1.99), (-0.01), (99999999.99), (NULL) AS v(d);
SELECT d FROM $t WHERE d = 1;
SELECT d FROM $t WHERE d > 1.5;
SELECT d FROM $t WHERE d < 0;
SELECT d FROM $t WHERE d >= 1.990;
SELECT d FROM $t WHERE d = 1.995;
SELECT d FROM $t WHERE d IN (1.99, -0.01);
SELECT d FROM $t WHERE d > 100000000000;

-- name: doubles with NaN and infinity
-- runs: v1 v2
CREATE TABLE $t (d DOUBLE, f FLOAT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1.0D, FLOAT(1.0)), (DOUBLE('NaN'), FLOAT('NaN')) AS v(d, f);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (-0.0D, FLOAT(-0.0)), (DOUBLE('-Infinity'), NULL) AS v(d, f);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (DOUBLE('NaN'), FLOAT('NaN')) AS v(d, f);
-- differs: outcome | java | apache/iceberg issue 9130: NaN is greater than all numbers in Spark, and Java skips files by bounds that leave NaN out
SELECT d FROM $t WHERE d > 0.5;
SELECT d FROM $t WHERE d < 0;
-- differs: outcome | java | 0.0 and -0.0 are equal in Spark, and Java skips files by bounds in which -0.0 is less
SELECT d FROM $t WHERE d = 0;
SELECT d FROM $t WHERE d <= 0.0;
SELECT d FROM $t WHERE isnan(d);
SELECT d FROM $t WHERE NOT isnan(d);
SELECT d FROM $t WHERE d = DOUBLE('NaN');
-- differs: outcome | java | apache/iceberg issue 9130: NaN is greater than all numbers in Spark, and Java skips files by bounds that leave NaN out
SELECT d FROM $t WHERE d > DOUBLE('Infinity');
SELECT d FROM $t WHERE d <> DOUBLE('NaN');
SELECT f FROM $t WHERE f IN (FLOAT(0.0), FLOAT('NaN'));
SELECT f FROM $t WHERE f = 0.1;

-- name: dates and times by days
-- runs: v2 v3
CREATE TABLE $t (id INT, ts TIMESTAMP, d DATE) USING iceberg PARTITIONED BY (days(ts), months(d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 00:00:00', DATE'2020-01-31'), (2, TIMESTAMP'2020-01-01 23:59:59.999999', DATE'2020-02-01'), (3, TIMESTAMP'1969-12-31 23:00:00', DATE'1969-12-31'), (4, NULL, NULL) AS v(id, ts, d);
SELECT id FROM $t WHERE ts = TIMESTAMP'2020-01-01 00:00:00';
SELECT id FROM $t WHERE ts > TIMESTAMP'2020-01-01 00:00:00';
SELECT id FROM $t WHERE ts < TIMESTAMP'1970-01-01 00:00:00';
SELECT id FROM $t WHERE ts >= DATE'2020-01-01';
SELECT id FROM $t WHERE date(ts) = DATE'2020-01-01';
SELECT id FROM $t WHERE d = DATE'2020-02-01';
SELECT id FROM $t WHERE d < DATE'2020-02-01';
SELECT id FROM $t WHERE year(d) = 1969;
SELECT id FROM $t WHERE ts IS NULL;
SELECT id FROM $t WHERE d BETWEEN DATE'1969-12-01' AND DATE'2020-01-31';
SELECT id FROM $t WHERE ts = '2020-01-01';
SELECT id FROM $t WHERE hour(ts) = 23;

-- name: hours, months and years
CREATE TABLE $t (id INT, a TIMESTAMP, b TIMESTAMP, c DATE) USING iceberg PARTITIONED BY (hours(a), months(b), years(c)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 00:30:00', TIMESTAMP'2020-01-31 23:59:59', DATE'2019-12-31'), (2, TIMESTAMP'2020-01-01 01:00:00', TIMESTAMP'2020-02-01 00:00:00', DATE'2020-01-01'), (3, TIMESTAMP'1969-12-31 23:59:59', TIMESTAMP'1969-12-31 23:59:59', DATE'1969-12-31') AS v(id, a, b, c);
SELECT id FROM $t WHERE a >= TIMESTAMP'2020-01-01 01:00:00';
SELECT id FROM $t WHERE a < TIMESTAMP'2020-01-01 00:45:00';
SELECT id FROM $t WHERE b < TIMESTAMP'2020-02-01 00:00:00';
SELECT id FROM $t WHERE c > DATE'2019-12-31';
SELECT id FROM $t WHERE c <= DATE'1969-12-31';
SELECT id FROM $t WHERE c = DATE'2019-12-31' AND b = TIMESTAMP'2020-01-31 23:59:59';

-- name: buckets
CREATE TABLE $t (i INT, l BIGINT, s STRING, d DATE, dec DECIMAL(9, 2), b BINARY) USING iceberg PARTITIONED BY (bucket(4, i), bucket(4, l), bucket(4, s), bucket(4, d), bucket(4, dec), bucket(4, b)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1L, 'a', DATE'2020-01-01', 1.25, X'01'), (2, 2L, 'b', DATE'2020-01-02', 2.25, X'02'), (NULL, NULL, NULL, NULL, NULL, NULL) AS v(i, l, s, d, dec, b);
SELECT i FROM $t WHERE i = 1;
SELECT i FROM $t WHERE l = 2;
SELECT i FROM $t WHERE s = 'b';
SELECT i FROM $t WHERE d = DATE'2020-01-02';
SELECT i FROM $t WHERE dec = 2.25;
SELECT i FROM $t WHERE b = X'02';
SELECT i FROM $t WHERE i IN (1, 7) AND s IS NOT NULL;
SELECT i FROM $t WHERE l IS NULL;
SELECT i FROM $t WHERE i > 1;
SELECT partition FROM $t.files;

-- name: functions of the catalog as filters
CREATE TABLE $t (id INT, ts TIMESTAMP, s STRING) USING iceberg PARTITIONED BY (bucket(4, id), days(ts), truncate(2, s)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 10:00:00', 'abc'), (2, TIMESTAMP'2020-02-02 10:00:00', 'xyz'), (3, NULL, NULL) AS v(id, ts, s);
SELECT id FROM $t WHERE lake.system.bucket(4, id) = lake.system.bucket(4, 1);
SELECT id FROM $t WHERE lake.system.days(ts) = DATE'2020-01-01';
SELECT id FROM $t WHERE lake.system.years(ts) = 50;
SELECT id FROM $t WHERE lake.system.months(ts) > 600;
SELECT id FROM $t WHERE lake.system.truncate(2, s) = 'xy';
SELECT id FROM $t WHERE lake.system.hours(ts) IS NULL;
DELETE FROM $t WHERE lake.system.bucket(4, id) = lake.system.bucket(4, 2);

-- name: nested fields
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRUCT<c:STRING>>, l ARRAY<INT>, m MAP<STRING, INT>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 1, 'b', named_struct('c', 'x')), array(1, 2), map('k', 1)), (2, NULL, NULL, NULL) AS v(id, s, l, m);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, named_struct('a', 5, 'b', NULL), array(), map()) AS v(id, s, l, m);
SELECT id FROM $t WHERE s.a = 5;
SELECT id FROM $t WHERE s.b.c = 'x';
SELECT id FROM $t WHERE s.b.c IS NULL;
SELECT id FROM $t WHERE s IS NULL;
SELECT id FROM $t WHERE s.b IS NOT NULL;
SELECT id FROM $t WHERE size(l) = 0;
SELECT id FROM $t WHERE l[0] = 1;
SELECT id FROM $t WHERE m['k'] = 1;
SELECT id FROM $t WHERE array_contains(l, 2);
SELECT id FROM $t WHERE s = named_struct('a', 1, 'b', named_struct('c', 'x'));
SELECT id FROM $t WHERE l = array(1, 2);
SELECT id FROM $t WHERE s.a < 3 OR l IS NULL;

-- name: a required field in an optional struct
CREATE TABLE $t (id INT, s STRUCT<a:INT NOT NULL, b:STRING>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 1, 'b', 'x')), (2, NULL) AS v(id, s);
SELECT id FROM $t WHERE s.a IS NULL;
SELECT id FROM $t WHERE s.a IS NOT NULL;
SELECT id FROM $t WHERE s.a = 1;
SELECT s.a FROM $t;

-- name: binary and boolean
CREATE TABLE $t (id INT, b BINARY, f BOOLEAN) USING iceberg PARTITIONED BY (f) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, X'11', true), (2, X'', false), (3, NULL, NULL) AS v(id, b, f);
SELECT id FROM $t WHERE b = X'11';
SELECT id FROM $t WHERE b < X'11';
SELECT id FROM $t WHERE f;
SELECT id FROM $t WHERE NOT f;
SELECT id FROM $t WHERE f IS NULL;
SELECT id FROM $t WHERE f <> true;
SELECT id FROM $t WHERE b IN (X'', X'22');

-- name: filters with deletes
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
DELETE FROM $t WHERE id = 3;
SELECT id FROM $t WHERE id >= 2;
SELECT count(*) FROM $t WHERE id = 3;
SELECT max(id) FROM $t;
SELECT count(*) FROM $t;
SELECT s FROM $t WHERE id > 0 ORDER BY s DESC LIMIT 1;

-- name: subqueries and joins
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(id, p);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('a', 10), ('c', 30), (NULL, 0) AS v(p, n);
SELECT t.id, u.n FROM $t t JOIN $db.u u ON t.p = u.p;
SELECT t.id, u.n FROM $t t LEFT JOIN $db.u u ON t.p = u.p;
SELECT t.id FROM $t t LEFT ANTI JOIN $db.u u ON t.p = u.p;
SELECT id FROM $t WHERE p IN (SELECT p FROM $db.u);
SELECT id FROM $t WHERE p NOT IN (SELECT p FROM $db.u WHERE p IS NOT NULL);
SELECT id FROM $t WHERE EXISTS (SELECT 1 FROM $db.u u WHERE u.p <=> $t.p);
SELECT id, (SELECT max(n) FROM $db.u) AS m FROM $t WHERE id = (SELECT min(id) FROM $t);
SELECT id FROM $t TABLESAMPLE (100 PERCENT);

-- name: filters under another case and ANSI off
-- set: spark.sql.ansi.enabled=false
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(Id, S);
SELECT ID FROM $t WHERE iD = 1;
SELECT Id FROM $t WHERE s = 1;
SELECT Id FROM $t WHERE Id = 'x';
SELECT Id FROM $t WHERE CAST(s AS INT) IS NULL;
SELECT Id / 0 FROM $t;

-- name: filters after a rename and a widening
-- runs: v1 v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, CAST(1.5 AS FLOAT)), (2, CAST(2.5 AS FLOAT)) AS v(id, f);
ALTER TABLE $t RENAME COLUMN id TO key;
ALTER TABLE $t ALTER COLUMN key TYPE BIGINT;
ALTER TABLE $t ALTER COLUMN f TYPE DOUBLE;
INSERT INTO $t VALUES (3000000000, 1e200);
SELECT key FROM $t WHERE key > 1;
SELECT key FROM $t WHERE f < 2;
SELECT key FROM $t WHERE key = 3000000000;
SELECT key FROM $t WHERE f IN (1.5, 1e200);

-- name: filters on a column that files lack
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t ADD COLUMN n INT;
INSERT INTO $t VALUES (2, 5);
SELECT id FROM $t WHERE n IS NULL;
SELECT id FROM $t WHERE n IS NOT NULL;
SELECT id FROM $t WHERE n = 5;
SELECT id FROM $t WHERE n <> 5;
SELECT id FROM $t WHERE NOT (n > 3);
SELECT id FROM $t WHERE coalesce(n, 0) = 0;
SELECT count(n), count(*) FROM $t;

-- name: row groups and small batches
-- set: spark.sql.parquet.columnarReaderBatchSize=2
-- runs: v2-mor v3-mor
CREATE TABLE $t (id INT, s STRING) USING iceberg $props('write.parquet.row-group-size-bytes'='100', 'read.parquet.vectorization.batch-size'='2');
INSERT INTO $t SELECT /*+ COALESCE(1) */ CAST(id AS INT), concat('s', id) FROM range(50);
SELECT count(*), min(id), max(s) FROM $t WHERE id % 7 = 3;
DELETE FROM $t WHERE id % 7 = 3;
SELECT count(*), sum(id) FROM $t WHERE id > 20;
SELECT id FROM $t WHERE s = 's49';

-- name: not vectorized
-- set: spark.sql.parquet.enableVectorizedReader=false
-- runs: v2-mor v3-mor
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>, l ARRAY<INT>) USING iceberg $props('read.parquet.vectorization.enabled'='false');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 1, 'b', 'x'), array(1)), (2, NULL, NULL), (3, named_struct('a', NULL, 'b', NULL), array(NULL)) AS v(id, s, l);
DELETE FROM $t WHERE id = 1;
SELECT * FROM $t;
SELECT s.b, l FROM $t WHERE s.a IS NULL;

-- name: bloom filters
-- runs: v2
CREATE TABLE $t (id INT, s STRING) USING iceberg $props('write.parquet.bloom-filter-enabled.column.s'='true');
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'c') AS v(id, s);
SELECT id FROM $t WHERE s = 'b';
SELECT id FROM $t WHERE s = 'c';

-- name: columns compared with each other
-- runs: v3
CREATE TABLE $t (a INT, b BIGINT, c DOUBLE, s STRING) USING iceberg PARTITIONED BY (a) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1L, 1.0D, '1'), (2, 3L, 2.5D, '02'), (NULL, NULL, DOUBLE('NaN'), NULL) AS v(a, b, c, s);
SELECT a FROM $t WHERE a = b;
SELECT a FROM $t WHERE a < c;
SELECT a FROM $t WHERE a <=> b;
SELECT a FROM $t WHERE s = a;
SELECT a FROM $t WHERE a + b > c * 2 OR c > b;

-- name: long lists
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (bucket(8, id)) $props AS SELECT id, CAST(id AS STRING) AS s FROM range(0, 300, 1, 1);
SELECT count(*) FROM $t WHERE id IN (0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 999);
SELECT count(*) FROM $t WHERE s NOT IN ('0', '3', '6', '9', '12', '15', '18', '21', '24', '27', '30', '33');
SELECT count(*) FROM $t WHERE id IN (SELECT explode(sequence(0, 400, 7)));
DELETE FROM $t WHERE id NOT IN (5, 50, 500);
SELECT * FROM $t;

-- name: partitions of floats
-- runs: v2
CREATE TABLE $t (id INT, d DOUBLE) USING iceberg PARTITIONED BY (d) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1.5D), (2, DOUBLE('NaN')), (3, DOUBLE('Infinity')), (4, NULL) AS v(id, d);
SELECT id FROM $t WHERE d = DOUBLE('NaN');
SELECT id FROM $t WHERE d = DOUBLE('Infinity');
SELECT id FROM $t WHERE isnan(d) OR d IS NULL;
SELECT id FROM $t WHERE d < DOUBLE('Infinity');

-- name: truncated bounds
-- runs: v3
CREATE TABLE $t (id INT, s STRING, b BINARY) USING iceberg $props;
INSERT INTO $t VALUES (1, repeat('a', 40), CAST(repeat('a', 40) AS BINARY));
INSERT INTO $t VALUES (2, concat(repeat('a', 16), 'z'), CAST(concat(repeat('a', 16), 'z') AS BINARY));
SELECT id FROM $t WHERE s = repeat('a', 40);
SELECT id FROM $t WHERE s > repeat('a', 16);
SELECT id FROM $t WHERE s LIKE 'aaaaaaaaaaaaaaaaz%';
SELECT id FROM $t WHERE b >= CAST(concat(repeat('a', 16), 'b') AS BINARY);

-- name: the text null beside NULL in a long list
-- runs: v2
CREATE TABLE $t (s STRING) USING iceberg $props;
INSERT INTO $t VALUES ('null');
INSERT INTO $t VALUES ('other');
SELECT * FROM $t WHERE s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'null', NULL);
DELETE FROM $t WHERE s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'null', NULL);
SELECT * FROM $t;
