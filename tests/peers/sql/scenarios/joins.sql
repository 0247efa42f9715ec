-- Joins between tables, also of tables whose partitions are laid out alike, and with what is not a table of ours.
-- runs: v2

-- name: kinds of joins
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (NULL, 'n') AS v(id, s);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 20), (3, 30), (NULL, 0) AS v(id, n);
SELECT t.id, t.s, u.n FROM $t t FULL OUTER JOIN $db.u u ON t.id = u.id;
SELECT * FROM $t LEFT SEMI JOIN $db.u ON t.id = u.id;

-- name: left, right, anti and cross
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (2, 'c') AS v(id, s);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 'x'), (4, 'y') AS v(id, s);
SELECT t.s, u.s FROM $t t LEFT JOIN $db.u u ON t.id = u.id;
SELECT t.s, u.s FROM $t t RIGHT JOIN $db.u u ON t.id = u.id AND t.s <> 'c';
SELECT t.* FROM $t t LEFT ANTI JOIN $db.u u ON t.id = u.id;
SELECT count(*) FROM $t CROSS JOIN $db.u;

-- name: natural and using
-- runs: v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10, 'a'), (2, 20, 'b') AS v(id, k, s);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10, true), (2, 21, false) AS v(id, k, f);
SELECT * FROM $t NATURAL JOIN $db.u;
SELECT * FROM $t JOIN $db.u USING (id);
SELECT id, k, s, f FROM $t FULL JOIN $db.u USING (id, k);
SELECT id FROM $t t JOIN $db.u u ON t.id = u.id;

-- name: null-safe keys
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (NULL, 'n') AS v(k, s);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (NULL, 'm'), (1, 'z') AS v(k, s);
SELECT t.s, u.s FROM $t t JOIN $db.u u ON t.k <=> u.k;
SELECT t.s, u.s FROM $t t JOIN $db.u u ON t.k = u.k;
SELECT t.s FROM $t t WHERE t.k NOT IN (SELECT k FROM $db.u);

-- name: ranges instead of keys
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 5), (2, 15), (3, 25) AS v(id, n);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('low', 0, 10), ('mid', 10, 20) AS v(name, lo, hi);
SELECT t.id, u.name FROM $t t JOIN $db.u u ON t.n >= u.lo AND t.n < u.hi;
SELECT t.id, u.name FROM $t t LEFT JOIN $db.u u ON t.n BETWEEN u.lo AND u.hi ORDER BY t.id, u.name;

-- name: keys of different types
-- runs: v3
CREATE TABLE $t (i INT, d DECIMAL(10, 2), dt DATE, s STRING) USING iceberg $props;
CREATE TABLE $db.u (l BIGINT, e DECIMAL(12, 4), ts TIMESTAMP, s STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1.5, DATE'2021-05-01', '1'), (2, 2.5, DATE'2021-05-02', '02') AS v(i, d, dt, s);
INSERT INTO $db.u SELECT /*+ COALESCE(1) */ * FROM VALUES (1L, 1.5000, TIMESTAMP'2021-05-01 00:00:00', '1'), (2L, 2.5001, TIMESTAMP'2021-05-02 01:00:00', '2') AS v(l, e, ts, s);
SELECT t.i FROM $t t JOIN $db.u u ON t.i = u.l;
SELECT t.i FROM $t t JOIN $db.u u ON t.d = u.e;
SELECT t.i FROM $t t JOIN $db.u u ON t.dt = u.ts;
SELECT t.i, u.s FROM $t t JOIN $db.u u ON t.s = u.l;

-- name: bucketed alike by integers
-- runs: v3
-- set: spark.sql.sources.v2.bucketing.enabled=true
CREATE TABLE $t USING iceberg PARTITIONED BY (bucket(4, id)) $props AS SELECT id, concat('t', id) AS s FROM range(0, 20, 1, 1);
CREATE TABLE $db.u USING iceberg PARTITIONED BY (bucket(4, id)) $props AS SELECT id * 3 AS id, concat('u', id) AS s FROM range(0, 8, 1, 1);
SELECT t.id, t.s, u.s FROM $t t JOIN $db.u u ON t.id = u.id ORDER BY t.id;
SELECT count(*) FROM $t t LEFT JOIN $db.u u ON t.id = u.id WHERE u.id IS NULL;
SELECT id, count(*) FROM $t GROUP BY id HAVING id > 17;

-- name: bucketed alike by other types
-- runs: v2
-- set: spark.sql.sources.v2.bucketing.enabled=true
CREATE TABLE $t (d DECIMAL(9, 2), dt DATE, ts TIMESTAMP, b BINARY) USING iceberg PARTITIONED BY (bucket(3, d), bucket(3, dt), bucket(3, ts), bucket(3, b)) $props;
CREATE TABLE $db.u (d DECIMAL(9, 2), dt DATE, ts TIMESTAMP, b BINARY) USING iceberg PARTITIONED BY (bucket(3, d), bucket(3, dt), bucket(3, ts), bucket(3, b)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1.10, DATE'2022-02-02', TIMESTAMP'2022-02-02 02:02:02', X'0102'), (-1.10, DATE'1950-01-01', TIMESTAMP'1950-01-01 00:00:00', X'') AS v(d, dt, ts, b);
INSERT INTO $db.u SELECT /*+ COALESCE(1) */ * FROM $t;
SELECT t.d, u.ts FROM $t t JOIN $db.u u ON t.d = u.d AND t.dt = u.dt AND t.ts = u.ts AND t.b = u.b;
SELECT t.d FROM $t t JOIN $db.u u ON t.dt = u.dt;

-- name: buckets of other numbers
-- runs: v2
-- set: spark.sql.sources.v2.bucketing.enabled=true
-- set: spark.sql.sources.v2.bucketing.pushPartValues.enabled=true
CREATE TABLE $t USING iceberg PARTITIONED BY (bucket(8, id)) $props AS SELECT id FROM range(0, 12, 1, 1);
CREATE TABLE $db.u USING iceberg PARTITIONED BY (bucket(4, id)) $props AS SELECT id FROM range(6, 18, 1, 1);
CREATE TABLE $db.w USING iceberg PARTITIONED BY (bucket(3, id)) $props AS SELECT id FROM range(9, 11, 1, 1);
SELECT t.id FROM $t t JOIN $db.u u ON t.id = u.id;
SELECT t.id FROM $t t JOIN $db.u u ON t.id = u.id JOIN $db.w w ON u.id = w.id;

-- name: partitioned by times alike
-- runs: v3
-- set: spark.sql.sources.v2.bucketing.enabled=true
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) $props;
CREATE TABLE $db.u (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (hours(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2023-03-03 03:03:03'), (2, TIMESTAMP'2023-03-04 00:00:00'), (3, NULL) AS v(id, ts);
INSERT INTO $db.u SELECT /*+ COALESCE(1) */ * FROM VALUES (10, TIMESTAMP'2023-03-03 03:03:03'), (20, TIMESTAMP'2023-03-04 01:00:00'), (30, NULL) AS v(id, ts);
SELECT t.id, u.id FROM $t t JOIN $db.u u ON t.ts = u.ts;
SELECT t.id, u.id FROM $t t LEFT JOIN $db.u u ON date(t.ts) = date(u.ts);

-- name: keys that only one side has
-- runs: v2
-- set: spark.sql.sources.v2.bucketing.enabled=true
-- set: spark.sql.sources.v2.bucketing.pushPartValues.enabled=true
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'it'), (3, NULL) AS v(id, dep);
CREATE TABLE $db.u USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('it', 'cellar'), ('ops', 'roof') AS v(dep, place);
SELECT t.id, u.place FROM $t t FULL JOIN $db.u u ON t.dep = u.dep;
SELECT t.dep, count(u.place) FROM $t t LEFT JOIN $db.u u ON t.dep = u.dep GROUP BY t.dep;

-- name: partitions that changed on one side
-- runs: v2
-- set: spark.sql.sources.v2.bucketing.enabled=true
CREATE TABLE $t USING iceberg PARTITIONED BY (bucket(2, id)) $props AS SELECT id, id % 3 AS g FROM range(0, 5, 1, 1);
CREATE TABLE $db.u USING iceberg PARTITIONED BY (bucket(2, id)) $props AS SELECT id, id % 3 AS g FROM range(2, 7, 1, 1);
ALTER TABLE $t ADD PARTITION FIELD g;
INSERT INTO $t SELECT id, id % 3 FROM range(5, 7, 1, 1);
SELECT t.id, u.g FROM $t t JOIN $db.u u ON t.id = u.id;
SELECT t.id FROM $t t JOIN $db.u u ON t.id = u.id AND t.g = u.g WHERE t.g = 0;

-- name: an empty side
-- runs: v1
CREATE TABLE $t (id INT, s STRING) USING iceberg PARTITIONED BY (bucket(2, id)) $props;
CREATE TABLE $db.u USING iceberg PARTITIONED BY (bucket(2, id)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x'), (2, 'y') AS v(id, s);
SELECT u.id, t.s FROM $db.u u LEFT JOIN $t t ON t.id = u.id;
SELECT u.id FROM $db.u u JOIN $t t ON t.id = u.id;
SELECT u.id FROM $db.u u WHERE NOT EXISTS (SELECT 1 FROM $t t WHERE t.id = u.id);

-- name: a filter that comes from the other side
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (day) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02'), (3, DATE'2024-01-03') AS v(id, day);
CREATE TABLE $db.days USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (DATE'2024-01-02', 'holiday'), (DATE'2024-01-03', 'work') AS v(day, kind);
SELECT t.id FROM $t t JOIN $db.days d ON t.day = d.day WHERE d.kind = 'holiday';
SELECT sum(t.id) FROM $t t JOIN $db.days d ON t.day = d.day AND d.kind LIKE '%o%';
SELECT t.id FROM $t t WHERE t.day IN (SELECT day FROM $db.days WHERE kind = 'none');

-- name: a filter from the other side on names with dots
-- runs: v3
CREATE TABLE $t (id INT, `region.code` STRING) USING iceberg PARTITIONED BY (`region.code`) $props;
CREATE TABLE $db.u (code STRING, keep BOOLEAN) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'eu'), (2, 'us') AS v(id, c);
INSERT INTO $db.u SELECT /*+ COALESCE(1) */ * FROM VALUES ('eu', true), ('us', false) AS v(code, keep);
SELECT t.id FROM $t t JOIN $db.u u ON t.`region.code` = u.code WHERE u.keep;
SELECT `region.code`, u.keep FROM $t JOIN $db.u u ON `region.code` = code;

-- name: a filter from the other side after a rename
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hr'), (2, 'it') AS v(id, dep);
ALTER TABLE $t RENAME COLUMN dep TO team;
INSERT INTO $t VALUES (3, 'it');
CREATE TABLE $db.u USING iceberg $props AS SELECT 'it' AS team, 7 AS floor;
SELECT t.id, u.floor FROM $t t JOIN $db.u u ON t.team = u.team WHERE u.floor > 5;

-- name: a table with itself
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL, 'root'), (2, 1, 'left'), (3, 1, 'right'), (4, 2, 'leaf') AS v(id, parent, name);
DELETE FROM $t WHERE name = 'right';
SELECT c.name, p.name FROM $t c JOIN $t p ON c.parent = p.id;
SELECT p.name, count(c.id) AS n FROM $t p LEFT JOIN $t c ON c.parent = p.id GROUP BY p.name;
SELECT a.id FROM $t a JOIN $t b ON a.id < b.id JOIN $t c ON b.id < c.id;

-- name: two snapshots of one table
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
UPDATE $t SET s = 'B' WHERE id = 2;
DELETE FROM $t WHERE id = 3;
SELECT old.id, old.s, new.s FROM $t VERSION AS OF $s1 old LEFT JOIN $t new ON old.id = new.id WHERE new.s IS DISTINCT FROM old.s;
SELECT * FROM $t VERSION AS OF $s1 EXCEPT SELECT * FROM $t;

-- name: a branch with main
-- runs: v2-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
ALTER TABLE $t CREATE BRANCH dev;
UPDATE $t.branch_dev SET s = upper(s) WHERE id = 1;
INSERT INTO $t.branch_dev VALUES (3, 'c');
SELECT m.id, d.s FROM $t m FULL JOIN $t.branch_dev d ON m.id = d.id;
INSERT INTO $t SELECT d.* FROM $t.branch_dev d LEFT ANTI JOIN $t m ON d.id = m.id;

-- name: with a table of values and a temporary view
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
CREATE OR REPLACE TEMPORARY VIEW names_of_joins AS SELECT * FROM VALUES (1, 'one'), (3, 'three') AS v(id, name);
SELECT t.s, n.name FROM $t t LEFT JOIN names_of_joins n USING (id);
SELECT t.s, v.x FROM $t t JOIN VALUES (2, 'two') AS v(id, x) ON t.id = v.id;
INSERT INTO $t SELECT id, name FROM names_of_joins WHERE id NOT IN (SELECT id FROM $t);
DROP VIEW names_of_joins;

-- name: lateral
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 3), (2, 5) AS v(id, n);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (1, 11), (2, 20) AS v(id, m);
SELECT t.id, x.top FROM $t t, LATERAL (SELECT max(m) AS top FROM $db.u u WHERE u.id = t.id) x;
SELECT t.id, x.m FROM $t t LEFT JOIN LATERAL (SELECT m FROM $db.u u WHERE u.id = t.id AND u.m > 10) x ON true;
SELECT t.id, y.s FROM $t t, LATERAL (SELECT t.id + t.n AS s) y;

-- name: hints
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (bucket(2, id)) $props AS SELECT id, id * 2 AS n FROM range(0, 10, 1, 1);
CREATE TABLE $db.u USING iceberg $props AS SELECT id, 'u' AS s FROM range(5, 8, 1, 1);
SELECT /*+ MERGE(t, u) */ t.id FROM $t t JOIN $db.u u ON t.id = u.id;
SELECT /*+ BROADCAST(u) */ t.n FROM $t t JOIN $db.u u ON t.id = u.id;
SELECT /*+ SHUFFLE_HASH(t) */ count(*) FROM $t t JOIN $db.u u ON t.id = u.id;
SELECT /*+ SHUFFLE_REPLICATE_NL(t) */ max(t.n) FROM $t t JOIN $db.u u ON t.id > u.id;

-- name: more than two tables
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 100, 'x'), (2, 100, 'y'), (3, 200, 'x') AS v(id, customer, item);
CREATE TABLE $db.c USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (100, 'Ann'), (200, 'Bob'), (300, 'Cy') AS v(customer, name);
CREATE TABLE $db.i USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('x', 1.50BD), ('y', 2.25BD) AS v(item, price);
SELECT c.name, sum(i.price) AS total FROM $t t JOIN $db.c c USING (customer) JOIN $db.i i USING (item) GROUP BY c.name ORDER BY total DESC;
SELECT c.name FROM $db.c c LEFT ANTI JOIN $t t USING (customer);
MERGE INTO $db.i i USING (SELECT item, count(*) AS n FROM $t JOIN $db.c USING (customer) GROUP BY item) s ON i.item = s.item WHEN MATCHED THEN UPDATE SET price = i.price * s.n;

-- name: keys inside of structs
-- runs: v2
CREATE TABLE $t (id INT, k STRUCT<a:INT, b:STRING>) USING iceberg $props;
CREATE TABLE $db.u (k STRUCT<a:INT, b:STRING>, n INT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, named_struct('a', 1, 'b', 'x')), (2, named_struct('a', 2, 'b', NULL)), (3, NULL) AS v(id, k);
INSERT INTO $db.u SELECT /*+ COALESCE(1) */ * FROM VALUES (named_struct('a', 1, 'b', 'x'), 10), (named_struct('a', 2, 'b', NULL), 20) AS v(k, n);
SELECT t.id, u.n FROM $t t JOIN $db.u u ON t.k = u.k;
SELECT t.id, u.n FROM $t t JOIN $db.u u ON t.k.a = u.k.a AND t.k.b <=> u.k.b;

-- name: with metadata tables
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b') AS v(id, p);
SELECT t.id, f.record_count FROM $t t JOIN $t.files f ON t._file = f.file_path;
SELECT f.partition.p, count(*) FROM $t.files f JOIN $t t ON f.partition.p = t.p GROUP BY f.partition.p;
SELECT s.operation, count(e.status) FROM $t.snapshots s JOIN $t.entries e ON s.snapshot_id = e.snapshot_id GROUP BY s.operation;
