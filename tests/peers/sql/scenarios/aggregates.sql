-- Aggregates, which may come from metadata: the same as from rows.
-- runs: v2

-- name: every type
-- runs: v1 v3
CREATE TABLE $t (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(9, 2), dt DATE, ts TIMESTAMP, s STRING, bin BINARY) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (true, 1, 10L, FLOAT(1.5), 1.5D, 1.25, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', 'a', X'01'), (false, -1, NULL, FLOAT(-1.5), NULL, NULL, NULL, TIMESTAMP'1969-12-31 23:59:59.999999', 'zzzzzzzzzzzzzzzzzzzzzzzzz', X'ffffffffffffffffffffffffffffffffffff') AS v(b, i, l, f, d, dec, dt, ts, s, bin);
INSERT INTO $t (i) VALUES (NULL);
SELECT count(*), count(b), count(i), count(l), count(s) FROM $t;
SELECT max(i), min(i), max(l), min(l), max(f), min(f), max(d), min(d), max(dec), min(dec) FROM $t;
SELECT max(dt), min(dt), max(ts), min(ts), max(b), min(b) FROM $t;
SELECT max(s), min(s), max(bin), min(bin) FROM $t;
SELECT count(DISTINCT i), sum(i), avg(l) FROM $t;

-- name: NaN, infinity and nulls
CREATE TABLE $t (id INT, d DOUBLE, f FLOAT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, DOUBLE('NaN'), FLOAT('NaN')), (2, DOUBLE('NaN'), FLOAT(1)) AS v(id, d, f);
SELECT max(d), min(d), max(f), min(f), count(d) FROM $t;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, DOUBLE('Infinity'), NULL), (4, DOUBLE('-Infinity'), NULL) AS v(id, d, f);
SELECT max(d), min(d), max(f), min(f), count(f) FROM $t;
SELECT max(d) FROM $t WHERE id > 2;

-- name: all null and empty
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
SELECT count(*), max(id), min(s) FROM $t;
INSERT INTO $t VALUES (NULL, NULL), (NULL, NULL);
SELECT count(*), count(id), max(id), min(s) FROM $t;

-- name: with filters
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, NULL) AS v(id, p);
SELECT count(*), max(id) FROM $t WHERE p = 'a';
SELECT count(*), min(id) FROM $t WHERE id > 1;
SELECT count(*) FROM $t WHERE p IS NULL;
SELECT p, count(*), max(id) FROM $t GROUP BY p;
SELECT max(p), min(p), count(DISTINCT p) FROM $t;
SELECT count(*) FROM $t WHERE p = 'none';

-- name: with deletes
-- runs: v2-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 3;
SELECT count(*), max(id), min(id) FROM $t;
DELETE FROM $t WHERE id = 1;
SELECT count(*), max(id), min(id) FROM $t;

-- name: nested columns
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRUCT<c:TIMESTAMP>>, l ARRAY<INT>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 5, 'b', named_struct('c', TIMESTAMP'2020-01-01 00:00:00')), array(1)), (2, named_struct('a', NULL, 'b', NULL), NULL), (3, NULL, array()) AS v(id, s, l);
SELECT max(s.a), min(s.a), count(s.a), count(s), count(l), max(s.b.c) FROM $t;
SELECT count(s.b), count(s.b.c) FROM $t;

-- name: time travel and branches
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t VALUES (10);
INSERT INTO $t.branch_b VALUES (20);
SELECT count(*), max(id) FROM $t VERSION AS OF $s1;
SELECT count(*), max(id) FROM $t VERSION AS OF 'b';
SELECT count(*), max(id) FROM $t;

-- name: columns that files lack
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t ADD COLUMN n INT;
SELECT count(n), max(n), count(*) FROM $t;
INSERT INTO $t VALUES (2, 5);
SELECT count(n), max(n), min(n), count(*) FROM $t;
ALTER TABLE $t ALTER COLUMN id TYPE BIGINT;
SELECT max(id), min(id) FROM $t;

-- name: metrics off
CREATE TABLE $t (id INT, s STRING) USING iceberg $props('write.metadata.metrics.default'='none', 'write.metadata.metrics.column.id'='counts');
INSERT INTO $t VALUES (1, 'a'), (NULL, NULL);
SELECT count(*), count(id), count(s), max(id), min(s) FROM $t;

-- name: expressions around
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
SELECT max(id) + 1, count(*) * 2 FROM $t HAVING max(id) > 1;
SELECT max(id + 1), min(upper(s)) FROM $t;
SELECT count(*) FROM $t UNION ALL SELECT max(id) FROM $t;
SELECT * FROM $t WHERE id = (SELECT max(id) FROM $t);

-- name: by partitions with several files
-- runs: v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
INSERT INTO $t VALUES (5, 'a'), (NULL, 'b');
SELECT p, count(*), count(id), min(id), max(id) FROM $t GROUP BY p;
DELETE FROM $t WHERE id = 5;
SELECT p, count(*), max(id) FROM $t GROUP BY p;
SELECT max(p) FROM $t WHERE id IS NULL;

-- name: after an overwrite and a rollback
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (9) AS v(id);
INSERT OVERWRITE $t VALUES (3);
SELECT min(id), max(id), count(*) FROM $t;
CALL lake.system.rollback_to_snapshot('$t', $s1);
SELECT min(id), max(id), count(*) FROM $t;

-- name: one that bounds cannot answer
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, repeat('b', 30)) AS v(id, s);
SELECT count(*), max(id), sum(id) FROM $t;
SELECT max(s), max(id) FROM $t;
SELECT max(struct(id, s)) FROM $t;
SELECT count(*), count(DISTINCT s) FROM $t WHERE s LIKE 'b%';
