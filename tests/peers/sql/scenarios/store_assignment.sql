-- What may be stored in which column, by the policies ANSI, STRICT and LEGACY; and casts that overflow.
-- runs: v2

-- name: ANSI, into texts
CREATE TABLE $t (s STRING) USING iceberg $props;
INSERT INTO $t VALUES (5);
INSERT INTO $t SELECT DATE'2020-01-01';
INSERT INTO $t SELECT 1.50;
INSERT INTO $t SELECT true;
INSERT INTO $t SELECT TIMESTAMP'2020-01-01 00:00:00';
INSERT INTO $t SELECT X'41';
INSERT INTO $t SELECT array(1);
INSERT INTO $t SELECT 1.5D;

-- name: ANSI, into numbers
CREATE TABLE $t (i INT) USING iceberg $props;
INSERT INTO $t SELECT 5L;
INSERT INTO $t SELECT 5000000000L;
INSERT INTO $t SELECT 5.9;
INSERT INTO $t SELECT 5.9D;
INSERT INTO $t SELECT '5';
INSERT INTO $t SELECT true;
INSERT INTO $t SELECT DATE'2020-01-01';
INSERT INTO $t SELECT DOUBLE('NaN');
INSERT INTO $t SELECT NULL;

-- name: ANSI, into decimals
CREATE TABLE $t (d DECIMAL(5, 2)) USING iceberg $props;
INSERT INTO $t SELECT 1;
INSERT INTO $t SELECT 1.239;
INSERT INTO $t SELECT 123456;
INSERT INTO $t SELECT 1.239D;
INSERT INTO $t SELECT '1.2';
INSERT INTO $t SELECT 999.999;

-- name: ANSI, into times
CREATE TABLE $t (id INT, d DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING iceberg $props;
INSERT INTO $t (id, ts) SELECT 1, DATE'2020-01-01';
INSERT INTO $t (id, ts) SELECT 2, TIMESTAMP_NTZ'2020-01-01 10:00:00';
INSERT INTO $t (id, tn) SELECT 3, TIMESTAMP'2020-01-01 10:00:00';
INSERT INTO $t (id, tn) SELECT 4, DATE'2020-01-01';
INSERT INTO $t (id, d) SELECT 5, TIMESTAMP'2020-01-01 10:00:00';
INSERT INTO $t (id, d) SELECT 6, '2020-01-01';
INSERT INTO $t (id, ts) SELECT 7, 1577836800L;
INSERT INTO $t (id, d) SELECT 8, TIMESTAMP_NTZ'2020-01-01 23:00:00';

-- name: ANSI, into floats, booleans and bytes
CREATE TABLE $t (id INT, f FLOAT, b BOOLEAN, bin BINARY) USING iceberg $props;
INSERT INTO $t (id, f) SELECT 1, 1e300D;
INSERT INTO $t (id, f) SELECT 2, 16777217;
INSERT INTO $t (id, f) SELECT 3, 1.1BD;
INSERT INTO $t (id, b) SELECT 4, 1;
INSERT INTO $t (id, b) SELECT 5, 'true';
INSERT INTO $t (id, bin) SELECT 6, 'abc';
INSERT INTO $t (id, bin) SELECT 7, 5;

-- name: STRICT
-- set: spark.sql.storeAssignmentPolicy=STRICT
CREATE TABLE $t (id INT, l BIGINT, d DOUBLE, s STRING, dec DECIMAL(10, 2), ts TIMESTAMP) USING iceberg $props;
INSERT INTO $t (id) SELECT 1L;
INSERT INTO $t (id) SELECT CAST(1 AS SMALLINT);
INSERT INTO $t (l) SELECT 2;
INSERT INTO $t (d) SELECT 3L;
INSERT INTO $t (s) SELECT 4;
INSERT INTO $t (dec) SELECT 1.2;
INSERT INTO $t (dec) SELECT 1.239;
INSERT INTO $t (ts) SELECT DATE'2020-01-01';
INSERT INTO $t (id) SELECT NULL;

-- name: LEGACY
-- set: spark.sql.storeAssignmentPolicy=LEGACY
-- set: spark.sql.ansi.enabled=false
CREATE TABLE $t (id INT, d DATE, s STRING) USING iceberg $props;
INSERT INTO $t (id) SELECT '5';
INSERT INTO $t (id) SELECT 'x';
INSERT INTO $t (id) SELECT 5000000000L;
INSERT INTO $t (d) SELECT '2020-01-01';
INSERT INTO $t (s) SELECT array(1);
UPDATE $t SET id = '7' WHERE id = 5;

-- name: ANSI off
-- set: spark.sql.ansi.enabled=false
CREATE TABLE $t (id INT, d DECIMAL(5, 2)) USING iceberg $props;
INSERT INTO $t (id) SELECT 5000000000L;
INSERT INTO $t (d) SELECT 123456.78;
INSERT INTO $t (id) SELECT CAST('x' AS INT);
INSERT INTO $t (id) SELECT 1 / 0;
UPDATE $t SET id = 3000000000L WHERE id IS NULL;
INSERT INTO $t (id) SELECT 2147483647 + 1;

-- name: inside of structs, lists and maps
CREATE TABLE $t (id INT, s STRUCT<a:BIGINT, b:STRING>, l ARRAY<DOUBLE>, m MAP<STRING, DECIMAL(5, 1)>) USING iceberg $props;
INSERT INTO $t SELECT 1, named_struct('a', 1, 'b', 2), array(1, 2), map(1, 1);
INSERT INTO $t SELECT 2, named_struct('a', 1.5, 'b', 'x'), array(1.5), map('k', 1.25);
INSERT INTO $t SELECT 3, named_struct('a', 'x', 'b', 'x'), NULL, NULL;
INSERT INTO $t SELECT 4, NULL, array('x'), NULL;
INSERT INTO $t SELECT 5, NULL, NULL, map('k', 123456);

-- name: updates and merges
-- runs: v2-cow v3-mor
CREATE TABLE $t (id INT, s STRING, d DATE, n DECIMAL(5, 2)) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a', DATE'2020-01-01', 1.25), (2, 'b', NULL, 2.5);
UPDATE $t SET s = 5 WHERE id = 1;
UPDATE $t SET s = d WHERE id = 1;
UPDATE $t SET n = id + 0.125 WHERE id = 2;
UPDATE $t SET d = TIMESTAMP'2021-01-01 10:00:00' WHERE id = 1;
UPDATE $t SET id = '9' WHERE id = 1;
UPDATE $t SET n = 99999 WHERE id = 1;
MERGE INTO $t t USING (SELECT 1 AS id, 7 AS s, 3 AS n) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.s, n = q.n;
MERGE INTO $t t USING (SELECT 5L AS id, true AS s) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, q.s);

-- name: values that nobody assigned stay
-- runs: v2-cow v2-mor v3-mor
CREATE TABLE $t (id INT, l BIGINT, n DECIMAL(20, 10), f FLOAT, s STRING, ts TIMESTAMP) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 9007199254740993L, 1234567890.0123456789, CAST(0.1 AS FLOAT), '01', TIMESTAMP'2020-01-01 00:00:00.123456'), (2, 9007199254740993L, 1234567890.0123456789, CAST(0.1 AS FLOAT), '02', TIMESTAMP'2020-01-01 00:00:00.123456') AS v(id, l, n, f, s, ts);
UPDATE $t SET l = 5.0D, n = 1, f = 2, s = 3, ts = DATE'2021-01-01' WHERE id = 1;
MERGE INTO $t t USING (SELECT 1 AS id, 1.5D AS x) q ON t.id = q.id WHEN MATCHED AND t.l = 5 THEN UPDATE SET n = q.x, l = q.x WHEN NOT MATCHED BY SOURCE AND t.id = 77 THEN UPDATE SET l = 1.5D;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 1), (2, 2) AS v(id, x)) q ON t.id = q.id WHEN MATCHED AND q.x = 1 THEN UPDATE SET f = 1.25D, l = 1.0D WHEN MATCHED AND q.x = 3 THEN UPDATE SET n = 2 WHEN MATCHED THEN UPDATE SET s = q.x;

-- name: errors inside of values
-- runs: v2-cow v3-mor
CREATE TABLE $t (id INT, x INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 1);
INSERT INTO $t SELECT 2, raise_error('boom');
INSERT INTO $t SELECT 2, assert_true(false);
UPDATE $t SET x = raise_error('boom') WHERE id = 1;
UPDATE $t SET x = 1 / 0 WHERE id = 1;
UPDATE $t SET x = CAST('x' AS INT) WHERE id = 5;
MERGE INTO $t t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET x = raise_error('boom');
DELETE FROM $t WHERE x = raise_error('boom');
SELECT * FROM $t;
