-- Structs, lists and maps: nulls at every level, evolution inside, functions.
-- runs: v2-cow v3-mor

-- name: nulls at every level
-- runs: v1 v2 v3
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRUCT<c:STRING, d:ARRAY<INT>>>, l ARRAY<STRUCT<x:INT, y:STRING>>, m MAP<STRING, STRUCT<z:ARRAY<STRING>>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL, NULL, NULL), (2, named_struct('a', NULL, 'b', NULL), array(), map()), (3, named_struct('a', 1, 'b', named_struct('c', NULL, 'd', array(NULL, 1))), array(NULL, named_struct('x', NULL, 'y', 'q')), map('k', NULL, 'j', named_struct('z', array(NULL)))) AS v(id, s, l, m);
SELECT id, s.b.d[0], l[1].y, m['j'].z FROM $t WHERE id = 3;
SELECT id FROM $t WHERE s IS NULL;
SELECT id, size(l), size(m) FROM $t;

-- name: lists of lists and maps of maps
CREATE TABLE $t (id INT, ll ARRAY<ARRAY<INT>>, mm MAP<STRING, MAP<INT, STRING>>, lm ARRAY<MAP<STRING, INT>>, ml MAP<INT, ARRAY<STRUCT<a:INT>>>) USING iceberg $props;
INSERT INTO $t VALUES (1, array(array(1, NULL), NULL, array()), map('a', map(1, 'x', 2, NULL)), array(map('k', 1)), map(7, array(named_struct('a', 1), NULL)));
UPDATE $t SET ll = array_append(ll, array(9)), lm = array() WHERE id = 1;
SELECT ll[0][1], mm['a'][1], ml[7][0].a FROM $t;

-- name: keys of many types
CREATE TABLE $t (id INT, a MAP<INT, INT>, b MAP<DATE, INT>, c MAP<STRUCT<x:INT>, INT>, d MAP<DECIMAL(5, 2), INT>, e MAP<BINARY, INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, map(1, 10), map(DATE'2020-01-01', 1), map(named_struct('x', 1), 2), map(1.25, 3), map(X'01', 4));
SELECT a[1], b[DATE'2020-01-01'], c[named_struct('x', 1)] FROM $t;
DELETE FROM $t WHERE a[1] = 10;

-- name: add, drop and rename inside
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:INT>, l ARRAY<STRUCT<a:INT, b:INT>>, m MAP<STRING, STRUCT<a:INT, b:INT>>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1, 'b', 2), array(named_struct('a', 1, 'b', 2)), map('k', named_struct('a', 1, 'b', 2)));
ALTER TABLE $t ADD COLUMN s.c STRING;
ALTER TABLE $t ADD COLUMN l.element.c STRING FIRST;
ALTER TABLE $t DROP COLUMN m.value.a;
ALTER TABLE $t RENAME COLUMN s.a TO z;
SELECT * FROM $t;
INSERT INTO $t VALUES (2, named_struct('z', 5, 'b', 6, 'c', 'n'), array(named_struct('c', 'n', 'a', 3, 'b', 4)), map('k', named_struct('b', 9)));
UPDATE $t SET s.c = 'u' WHERE s.z = 1;
SELECT s.c, l.c, m['k'].b FROM $t;

-- name: a name used again in a list
CREATE TABLE $t (id INT, l ARRAY<STRUCT<a:INT, b:INT>>) USING iceberg $props;
INSERT INTO $t VALUES (1, array(named_struct('a', 1, 'b', 2)));
ALTER TABLE $t DROP COLUMN l.element.a;
ALTER TABLE $t ADD COLUMN l.element.a INT;
INSERT INTO $t VALUES (2, array(named_struct('b', 3, 'a', 4)));
SELECT id, l.a FROM $t;
SELECT id, l[0].b FROM $t WHERE l[0].a IS NULL;
DELETE FROM $t WHERE l[0].a IS NULL;

-- name: a name used again in a map
CREATE TABLE $t (id INT, m MAP<STRING, STRUCT<a:INT, b:INT>>) USING iceberg $props;
INSERT INTO $t VALUES (1, map('k', named_struct('a', 1, 'b', 2)));
ALTER TABLE $t RENAME COLUMN m.value.a TO c;
ALTER TABLE $t RENAME COLUMN m.value.b TO a;
SELECT id, m['k'].a, m['k'].c FROM $t;
UPDATE $t SET m = map('n', named_struct('c', 7, 'a', 8)) WHERE m['k'].a = 2;

-- name: a struct all of whose fields are new
CREATE TABLE $t (id INT, s STRUCT<a:INT>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 1)), (2, NULL) AS v(id, s);
ALTER TABLE $t ADD COLUMN s.b INT;
ALTER TABLE $t DROP COLUMN s.a;
SELECT id, s IS NULL, s.b FROM $t;
SELECT * FROM $t;
SELECT id FROM $t WHERE s IS NOT NULL;
UPDATE $t SET s.b = 3 WHERE s IS NOT NULL;

-- name: widen inside
CREATE TABLE $t (id INT, s STRUCT<a:INT, f:FLOAT>, l ARRAY<INT>, m MAP<INT, DECIMAL(4, 1)>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1, 'f', 1.5), array(1), map(1, 1.5));
ALTER TABLE $t ALTER COLUMN s.a TYPE BIGINT;
ALTER TABLE $t ALTER COLUMN s.f TYPE DOUBLE;
ALTER TABLE $t ALTER COLUMN l.element TYPE BIGINT;
ALTER TABLE $t ALTER COLUMN m.value TYPE DECIMAL(10, 1);
INSERT INTO $t VALUES (2, named_struct('a', 3000000000, 'f', 1e300), array(3000000000), map(2, 123456789.5));
SELECT * FROM $t;
DELETE FROM $t WHERE s.a > 5;

-- name: null structs in deletes
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRUCT<c:INT>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL), (2, named_struct('a', NULL, 'b', NULL)), (3, named_struct('a', 1, 'b', named_struct('c', NULL))), (4, named_struct('a', 1, 'b', named_struct('c', 1))) AS v(id, s);
SELECT id FROM $t WHERE s.b.c IS NULL;
DELETE FROM $t WHERE s.a IS NULL AND s IS NOT NULL;
DELETE FROM $t WHERE s.b.c IS NULL AND s.b IS NOT NULL;
DELETE FROM $t WHERE s IS NULL;

-- name: struct by position and by name
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>) USING iceberg $props;
INSERT INTO $t SELECT 1, struct(1, 'x');
INSERT INTO $t SELECT 2, (SELECT named_struct('a', 2, 'b', 'y'));
INSERT INTO $t VALUES (3, (3, 'z'));
UPDATE $t SET s = named_struct('b', 'n', 'a', 10) WHERE id = 1;
UPDATE $t SET s = struct(11, 'm') WHERE id = 2;

-- name: a struct with too few or too many fields
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1, 'b', 'x'));
INSERT INTO $t SELECT 2, named_struct('a', 1);
INSERT INTO $t SELECT 2, named_struct('a', 1, 'b', 'x', 'c', 2);
UPDATE $t SET s = named_struct('a', 1);
UPDATE $t SET s = named_struct('a', 1, 'b', 'x', 'c', 1);
MERGE INTO $t t USING (SELECT 1 AS id, named_struct('a', 5) AS s) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.s;

-- name: higher functions and generators
CREATE TABLE $t (id INT, l ARRAY<STRUCT<a:INT>>, m MAP<STRING, INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, array(named_struct('a', 1), named_struct('a', 2)), map('x', 1, 'y', 2));
SELECT id, e.a FROM $t LATERAL VIEW explode(l) q AS e;
SELECT transform(l, x -> x.a * 2), map_keys(m), aggregate(l, 0, (s, x) -> s + x.a) FROM $t;
UPDATE $t SET l = filter(l, x -> x.a > 1), m = map_filter(m, (k, v) -> v > 1);
SELECT inline(l) FROM $t;

-- name: very deep
CREATE TABLE $t (id INT, s STRUCT<a:ARRAY<MAP<STRING, STRUCT<b:ARRAY<STRUCT<c:MAP<INT, STRING>>>>>>>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', array(map('k', named_struct('b', array(named_struct('c', map(1, 'deep')), NULL)))))), (2, NULL);
SELECT s.a[0]['k'].b[0].c[1] FROM $t;
ALTER TABLE $t ADD COLUMN s.a.element.value.b.element.n INT;
SELECT * FROM $t;
UPDATE $t SET s.a = NULL WHERE id = 1;

-- name: required inside
CREATE TABLE $t (id INT, s STRUCT<a:INT NOT NULL, b:STRUCT<c:INT NOT NULL>>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1, 'b', named_struct('c', 1))), (2, NULL), (3, named_struct('a', 3, 'b', NULL));
INSERT INTO $t VALUES (4, named_struct('a', NULL, 'b', NULL));
UPDATE $t SET s.a = 9 WHERE id = 3;
UPDATE $t SET s.a = NULL WHERE id = 3;
SELECT id, s.b.c FROM $t;

-- name: a field beside a widened element
-- runs: v2-cow
CREATE TABLE $t (id INT, s STRUCT<a:INT, f:FLOAT>, l ARRAY<INT>, m MAP<INT, DECIMAL(4, 1)>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 1, 'f', 1.5), array(1), map(1, 1.5));
ALTER TABLE $t ALTER COLUMN l.element TYPE BIGINT;
INSERT INTO $t VALUES (2, named_struct('a', 30, 'f', 1.5), array(3000000000), map(2, 12.5));
SELECT id, s.a FROM $t;
DELETE FROM $t WHERE s.a > 5;

-- name: order and groups by nested fields
-- runs: v2
CREATE TABLE $t (id INT, s STRUCT<a:INT, t:STRUCT<b:STRING>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 2, 't', named_struct('b', 'x'))), (2, named_struct('a', 1, 't', NULL)), (3, NULL) AS v(id, s);
SELECT id FROM $t ORDER BY s.a NULLS LAST;
SELECT id FROM $t ORDER BY s DESC NULLS LAST;
SELECT s.t.b, count(*) FROM $t GROUP BY s.t.b;
SELECT DISTINCT s.t FROM $t;
SELECT id, s.t.b IS NULL AS n FROM $t WHERE s IS NOT NULL;

-- name: copies between tables with other nesting
-- runs: v3
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>) USING iceberg $props;
CREATE TABLE $db.u (id BIGINT, s STRUCT<a:BIGINT, b:STRING>, x INT) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('a', 5, 'b', 'q')), (2, NULL);
INSERT INTO $db.u SELECT *, 0 FROM $t;
INSERT INTO $t SELECT id + 10, s FROM $db.u;
INSERT INTO $t SELECT 3, named_struct('a', id, 'b', s) FROM $db.u;
UPDATE $db.u SET s = (SELECT max(s) FROM $t), x = 1 WHERE id = 2;

-- name: empty lists and maps
-- runs: v1
CREATE TABLE $t (id INT, l ARRAY<STRUCT<a:INT>>, m MAP<INT, ARRAY<STRING>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, array(), map()), (2, array(NULL), map(1, NULL)), (3, array(named_struct('a', NULL)), map(2, array())), (4, NULL, NULL) AS v(id, l, m);
SELECT id, size(l), size(m) FROM $t;
SELECT id FROM $t WHERE l[0] IS NULL AND size(l) > 0;
DELETE FROM $t WHERE size(l) = 0;
UPDATE $t SET l = array(), m = map() WHERE id = 4;
