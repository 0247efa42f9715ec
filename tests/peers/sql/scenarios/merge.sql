-- MERGE: clauses, conditions, sources, partitions, alignment of columns, errors.
-- runs: v2-cow v3-mor

-- name: update, delete and insert
-- runs: v1-cow v2-cow v2-mor v3-cow v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'v1'), (6, 'v6') AS v(id, v);
MERGE INTO $t USING (SELECT * FROM VALUES (2, 's2'), (1, 's1'), (6, 's6') AS s(id, v)) s ON $t.id = s.id WHEN MATCHED AND $t.id = 1 THEN UPDATE SET * WHEN MATCHED AND $t.id = 6 THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *;

-- name: an empty target, all rows inserted
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'e1'), (2, 'e2'), (3, 'e3') AS s(id, dep)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;

-- name: an empty target, some rows inserted
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'e1'), (2, 'e2'), (3, 'e3') AS s(id, dep)) s ON t.id = s.id WHEN NOT MATCHED AND s.id >= 2 THEN INSERT *;
MERGE INTO $t t USING (SELECT * FROM VALUES (9, 'e9') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;

-- name: an empty source
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a') AS v(id, dep);
MERGE INTO $t t USING (SELECT 1 AS id, 'x' AS dep WHERE false) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT 1 AS id, 'x' AS dep WHERE false) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;

-- name: only updates
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 's2'), (1, 's1'), (6, 's6') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET *;

-- name: only updates, with nulls in the target
CREATE TABLE $t (id INT, v STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL), (6, NULL), (NULL, 'n') AS v(id, v);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 's2'), (1, 's1'), (6, 's6'), (NULL, 'sn') AS s(id, v)) s ON t.id == s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET v = s.v;
MERGE INTO $t t USING (SELECT * FROM VALUES (NULL, 'sn') AS s(id, v)) s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;

-- name: only deletes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (2), (1), (6) AS s(id)) s ON t.id = s.id WHEN MATCHED AND t.id = 6 THEN DELETE;
MERGE INTO $t t USING (SELECT * FROM VALUES (2), (1), (6) AS s(id)) s ON t.id = s.id WHEN MATCHED THEN DELETE;

-- name: matched and not matched
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (2, 's2') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: named columns
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (2, 's2'), (6, 's6') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET t.id = s.id, t.dep = s.dep WHEN MATCHED AND t.id = 6 THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT (t.id, t.dep) VALUES (s.id, s.dep);

-- name: a source from a common table expression
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 'e2'), (6, 'e6') AS v(id, dep);
WITH c AS (SELECT id + 1 AS id, dep FROM VALUES (1, 'c1'), (3, 'c3') AS s(id, dep)) MERGE INTO $t t USING c s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: a source from set operations
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
CREATE TABLE $db.u USING iceberg AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 's2'), (1, 's1'), (6, 's6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM $db.u WHERE id = 2 UNION ALL SELECT * FROM $db.u WHERE id = 1 OR id = 6) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN MATCHED AND t.id = 6 THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *;

-- name: several rows of the source for one of the target
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'c') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'a'), (1, 'b') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND s.dep = 'a' THEN UPDATE SET *;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'a'), (1, 'b') AS s(id, dep)) s ON t.id > s.id WHEN MATCHED THEN UPDATE SET dep = 'x';

-- name: several rows of the source for one that is deleted
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1), (1), (2) AS s(id)) s ON t.id = s.id WHEN MATCHED THEN DELETE;
MERGE INTO $t t USING (SELECT * FROM VALUES (6), (6), (7) AS s(id)) s ON t.id = s.id WHEN MATCHED AND t.dep = 'e6' THEN DELETE;

-- name: a delete of several rows of the source, and an insert
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'c') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *;

-- name: the first clause that holds decides
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (6, 'e6'), (7, 'e7') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (6, 's6'), (7, 's7') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET dep = 'first' WHEN MATCHED AND t.id < 7 THEN UPDATE SET dep = 'second' WHEN MATCHED THEN DELETE;

-- name: several insert clauses
CREATE TABLE $t (id INT, dep STRING) USING iceberg $props;
INSERT INTO $t VALUES (0, 'e0');
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (2, 's2'), (3, 's3'), (0, 's0') AS s(id, dep)) s ON t.id = s.id WHEN NOT MATCHED AND s.id = 1 THEN INSERT (dep, id) VALUES (s.dep, -1) WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED THEN INSERT *;

-- name: not matched by source
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (2, 'e2'), (3, 'e3'), (4, 'e4') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1), (4) AS s(id)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET id = -1 WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (s.id, 'new') WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET dep = 'invalid' WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE;

-- name: not matched by source alone
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (2, 'e2'), (3, NULL) AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1) AS s(id)) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.dep = 'e2' THEN UPDATE SET dep = 'x';
MERGE INTO $t t USING (SELECT * FROM VALUES (1) AS s(id)) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;

-- name: not matched by source with bare names
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'e1'), (2, 'e2') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'x') AS s(id, dep)) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND dep = 'e2' THEN UPDATE SET dep = concat(dep, '!');

-- name: not matched by source in partitions
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'a') AS s(id, dep)) s ON t.id = s.id AND t.dep = 'a' WHEN MATCHED THEN UPDATE SET dep = 'z' WHEN NOT MATCHED BY SOURCE AND t.dep = 'b' THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = -t.id;

-- name: an identity partition
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (6, 'b') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 'c'), (1, 'd'), (6, 'b') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN MATCHED AND t.id = 6 THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *;

-- name: a partition by days
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2000-01-01 00:00:00'), (6, TIMESTAMP'2000-01-06 00:00:00') AS v(id, ts);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, TIMESTAMP'2001-01-02 00:00:00'), (1, TIMESTAMP'2001-01-01 00:00:00'), (6, TIMESTAMP'2001-01-06 00:00:00') AS s(id, ts)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN MATCHED AND t.id = 6 THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *;

-- name: buckets and prefixes
CREATE TABLE $t (id INT, dep STRING) USING iceberg PARTITIONED BY (bucket(2, id), truncate(1, dep)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'ab'), (6, 'cd'), (7, NULL) AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 'xy'), (1, 'zz'), (6, 'cd') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED AND s.dep = 'zz' THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;

-- name: a target that is ordered
CREATE TABLE $t (id INT, dep STRING) USING iceberg PARTITIONED BY (dep) $props;
ALTER TABLE $t WRITE ORDERED BY (id);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (6, 'a') AS v(id, dep);
MERGE INTO $t t USING (SELECT * FROM VALUES (5, 'a'), (1, 'a'), (9, 'b') AS s(id, dep)) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;

-- name: the target as its own source
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'v1'), (2, 'v2') AS v(id, v);
MERGE INTO $t t USING $t s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET v = 'x' WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT id + 1 AS id, v FROM $t) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;

-- name: a source with more columns
CREATE TABLE $t (id INT, v STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'v1'), (2, 'v2');
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'e1', 's1'), (3, 'e3', 's3') AS s(id, extra, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'e1', 's1!'), (4, 'e4', 's4') AS s(id, extra, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: a source with fewer columns
CREATE TABLE $t (id INT, v STRING, w INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 'v1', 1);
MERGE INTO $t t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
MERGE INTO $t t USING (SELECT 2 AS id, 'x' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT 3 AS id, 'x' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);

-- name: nulls on both sides
CREATE TABLE $t (id INT, v STRING) USING iceberg $props;
INSERT INTO $t VALUES (NULL, 'v1'), (2, 'v2');
MERGE INTO $t t USING (SELECT * FROM VALUES (NULL, 's1'), (4, 's4') AS s(id, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;

-- name: null conditions
CREATE TABLE $t (id INT, v STRING) USING iceberg $props;
INSERT INTO $t VALUES (NULL, 'v1'), (2, 'v2');
MERGE INTO $t t USING (SELECT * FROM VALUES (NULL, 's1'), (2, 's2') AS s(id, v)) s ON t.id = s.id AND NULL WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;

-- name: null conditions of clauses
CREATE TABLE $t (id INT, v STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'v1'), (2, 'v2');
-- differs v2-cow: history | choice | no row changes, so nothing is committed; Java copies the files that it read
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (2, 's2'), (3, 's3') AS s(id, v)) s ON t.id = s.id WHEN MATCHED AND t.id = 1 AND NULL THEN UPDATE SET v = s.v WHEN MATCHED AND t.v = 'v1' AND NULL THEN DELETE WHEN NOT MATCHED AND s.id = 3 AND NULL THEN INSERT *;
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 's1'), (2, 's2'), (3, 's3') AS s(id, v)) s ON t.id = s.id WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED AND t.id = 2 THEN UPDATE SET v = s.v WHEN NOT MATCHED AND NULL THEN INSERT *;

-- name: only inserts
-- runs: v1-cow v2-mor v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('a', 'v1'), ('b', 'v2') AS v(id, v);
MERGE INTO $t t USING (SELECT * FROM VALUES ('a', 's1'), ('a', 's2'), ('c', 's3'), ('d', 's4'), ('d', 's5') AS s(id, v)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;

-- name: only inserts, with a condition
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1) AS v(id, v);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 11), (2, 21), (2, 22), (3, 31), (3, 32) AS s(id, v)) s ON t.id = s.id WHEN NOT MATCHED AND s.v % 2 = 0 THEN INSERT *;

-- name: columns by name, in any order
CREATE TABLE $t (id INT, a INT, b STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 11, 'x'), (2, 22, 'y');
MERGE INTO $t t USING (SELECT * FROM VALUES ('s', 1, 100), ('n', 3, 300) AS s(b, id, a)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: columns in another case
CREATE TABLE $t (id INT, a INT, b STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 11, 'x'), (2, 22, 'y');
MERGE INTO $t t USING (SELECT * FROM VALUES (1, -2, 'S'), (5, -5, 'N') AS s(ID, A, B)) s ON t.iD = s.Id WHEN MATCHED THEN UPDATE SET B = s.B, a = S.a WHEN NOT MATCHED THEN INSERT (B, A, iD) VALUES (s.b, s.a, s.id);

-- name: fields of structs
CREATE TABLE $t (id INT, s STRUCT<c1:INT, c2:STRUCT<a:ARRAY<INT>, m:MAP<STRING, STRING>>>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('c1', 2, 'c2', named_struct('a', NULL, 'm', NULL)));
MERGE INTO $t t USING (SELECT 1 AS id, -2 AS c1) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.s.c1 = src.c1;
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.s.c1 = NULL, t.s.c2.a = array(1, 2), t.s.c2.m = map('x', 'y');
MERGE INTO $t t USING (SELECT 1 AS id, named_struct('c1', 100, 'c2', named_struct('a', array(1), 'm', map('x', 'y'))) AS s) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.s = src.s;

-- name: a field of a null struct
CREATE TABLE $t (id INT, s STRUCT<n1:INT, n2:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, NULL);
MERGE INTO $t t USING (SELECT 1 AS id, 7 AS n) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.s.n1 = src.n;

-- name: values that are cast to the column
CREATE TABLE $t (id INT, s STRING, l BIGINT, d DECIMAL(20, 4)) USING iceberg $props;
INSERT INTO $t VALUES (1, 'value', 9007199254740993, 1.2345), (2, 'b', 9007199254740995, 2.5);
MERGE INTO $t t USING (SELECT 1L AS id, 5.0D AS x) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET l = src.x;
MERGE INTO $t t USING (SELECT * FROM VALUES (1L, 1), (2L, 2) AS q(id, x)) src ON t.id = src.id WHEN MATCHED AND t.id = 1 THEN UPDATE SET d = src.x WHEN MATCHED THEN UPDATE SET s = src.x WHEN NOT MATCHED THEN INSERT (id) VALUES (src.id);

-- name: a required column
CREATE TABLE $t (id INT NOT NULL, v STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
MERGE INTO $t t USING (SELECT 1 AS id, 'b' AS v UNION ALL SELECT 2, 'c') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = NULL;
MERGE INTO $t t USING (SELECT 9 AS id, 'c' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v);

-- name: columns that do not exist
CREATE TABLE $t (id INT, s STRUCT<n1:INT>) USING iceberg $props;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.none = 1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s.none = 1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, none) VALUES (1, 2);
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.none = s.id WHEN MATCHED THEN DELETE;

-- name: insert lists that are wrong
CREATE TABLE $t (id INT, s STRUCT<n1:INT>) USING iceberg $props;
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN NOT MATCHED THEN INSERT (id, s.n1) VALUES (src.id, 1);
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (src.id, 1);
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (src.id);
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN NOT MATCHED THEN INSERT (id) VALUES (src.id);

-- name: conflicting assignments
CREATE TABLE $t (id INT, s STRUCT<n1:INT, n2:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('n1', 1, 'n2', 1));
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.id = 1, t.s.n1 = 2, t.id = 2;
MERGE INTO $t t USING (SELECT 1 AS id) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET t.s.n1 = 1, t.s = named_struct('n1', 1, 'n2', 1);

-- name: conditions that are not allowed
CREATE TABLE $t (id INT, v INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 1);
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id AND rand() > 2 WHEN MATCHED THEN UPDATE SET v = -1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND rand() > 2 THEN UPDATE SET v = -1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON max(t.id) = s.id WHEN MATCHED THEN UPDATE SET v = -1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND max(t.id) > 1 THEN DELETE;
MERGE INTO $t t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED AND t.v > 0 THEN INSERT (id) VALUES (s.id);
MERGE INTO $t t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, t.v);

-- name: subqueries in conditions
CREATE TABLE $t (id INT, v INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 1);
-- differs: outcome | choice | subqueries in the condition of the join are allowed; Spark refuses them for its own writers
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id AND t.id < (SELECT max(id) + 1 FROM $t) WHEN MATCHED THEN UPDATE SET v = -1;
-- differs: outcome | choice | subqueries in the condition of a clause are allowed; Spark refuses them for its own writers
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND t.id IN (SELECT 1) THEN UPDATE SET v = -2;
-- differs: outcome | choice | subqueries in the condition of a clause are allowed; Spark refuses them for its own writers
MERGE INTO $t t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED AND s.id NOT IN (SELECT id FROM $t) THEN INSERT (id, v) VALUES (s.id, 0);

-- name: a condition that is a constant
CREATE TABLE $t (id INT, v INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 1);
MERGE INTO $t t USING (SELECT 5 AS id, 6 AS v) s ON false WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT 5 AS id, 6 AS v) s ON true WHEN MATCHED THEN UPDATE SET v = s.v;
-- differs v2-cow: history | choice | only files with changed rows are replaced, so that nothing is added; Java copies all files that it read
MERGE INTO $t t USING (SELECT 5 AS id, 6 AS v) s ON 1 = 2 WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE;

-- name: conditions on the target alone
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (1, 'b'), (2, 'b') AS v(id, p);
MERGE INTO $t t USING (SELECT 1 AS id UNION ALL SELECT 2) s ON t.id = s.id AND t.p = 'a' WHEN MATCHED THEN UPDATE SET id = 10 WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'new');

-- name: a branch
-- runs: v1-cow v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, v);
ALTER TABLE $t CREATE BRANCH b;
MERGE INTO $t.branch_b t USING (SELECT 1 AS id, 'x' AS v UNION ALL SELECT 3, 'y') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING $t.branch_b s ON t.id = s.id WHEN MATCHED AND t.v <> s.v THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t.branch_none t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;

-- name: values from expressions of both sides
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10, 'a'), (2, 20, 'b') AS v(id, n, s);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 5), (3, 7) AS q(id, n)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n, s = concat(t.s, s.n) WHEN NOT MATCHED THEN INSERT (id, n, s) VALUES (s.id, s.n * 2, upper('new'));

-- name: a source that is not deterministic in its order
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20) AS v(id, n);
MERGE INTO $t t USING (SELECT id, max(n) AS n FROM VALUES (1, 1), (1, 2), (3, 3) AS q(id, n) GROUP BY id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: no equality in the condition
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (5, 50) AS v(id, n);
MERGE INTO $t t USING (SELECT 3 AS lim) s ON t.id < s.lim WHEN MATCHED THEN UPDATE SET n = 0;
MERGE INTO $t t USING (SELECT 3 AS lim) s ON t.id > s.lim WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 1;

-- name: no clause at all, and clauses in the wrong order
CREATE TABLE $t (id INT, v INT) USING iceberg $props;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET v = 1;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1) WHEN NOT MATCHED THEN INSERT (id) VALUES (2);

-- name: a view as the target
CREATE TABLE $t (id INT, v INT) USING iceberg $props;
CREATE VIEW $db.w AS SELECT * FROM $t;
MERGE INTO $db.w t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;
UPDATE $db.w SET v = 1;
-- differs: outcome | choice | a view cannot be changed; Spark lets a DELETE pass that finds nothing to do
DELETE FROM $db.w WHERE id = 1;
INSERT INTO $db.w VALUES (1, 1);

-- name: a source of one value
-- runs: v2-mor
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
MERGE INTO $t t USING (SELECT 1 AS one) s ON t.id = s.one WHEN NOT MATCHED THEN INSERT (id, s) VALUES (one, 'first');
MERGE INTO $t t USING (SELECT 1 AS one) s ON t.id = s.one WHEN MATCHED THEN UPDATE SET s = concat(t.s, '!') WHEN NOT MATCHED THEN INSERT (id, s) VALUES (one, 'first');
MERGE INTO $t USING (SELECT 1) ON true WHEN MATCHED THEN DELETE;

-- name: a source that is a metadata table
-- runs: v2-cow
CREATE TABLE $t (id BIGINT, op STRING) USING iceberg $props;
CREATE TABLE $db.u USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $db.u VALUES (2);
MERGE INTO $t t USING (SELECT row_number() OVER (ORDER BY committed_at) AS id, operation AS op FROM $db.u.snapshots) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING $db.u.snapshots s ON t.op = 'none' WHEN NOT MATCHED AND s.operation = 'delete' THEN INSERT (id) VALUES (0);

-- name: a source at an old snapshot
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
DELETE FROM $t WHERE id = 2;
UPDATE $t SET s = 'changed' WHERE id = 1;
MERGE INTO $t t USING $t VERSION AS OF $s1 s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM $t EXCEPT SELECT * FROM $t VERSION AS OF $s1;

-- name: changes that are recorded
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20), (3, 30) AS v(id, n);
CREATE TABLE $db.log USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, 'U', 11), (2, 1, 'U', 12), (3, 2, 'D', NULL), (4, 4, 'I', 40), (5, 4, 'U', 44) AS v(seq, id, op, n);
MERGE INTO $t t USING (SELECT id, op, n FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY seq DESC) AS r FROM $db.log) WHERE r = 1) c ON t.id = c.id WHEN MATCHED AND c.op = 'D' THEN DELETE WHEN MATCHED THEN UPDATE SET n = c.n WHEN NOT MATCHED AND c.op <> 'D' THEN INSERT (id, n) VALUES (c.id, c.n);
MERGE INTO $t t USING $db.log c ON t.id = c.id WHEN MATCHED THEN UPDATE SET n = c.n;

-- name: history kept in the same table
-- runs: v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (cur) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'Rome', true), (2, 'Oslo', true) AS v(id, city, cur);
MERGE INTO $t t USING (SELECT id AS k, id, city FROM VALUES (1, 'Bern'), (3, 'Lima') AS v(id, city) UNION ALL SELECT NULL, id, city FROM VALUES (1, 'Bern') AS v(id, city)) s ON t.id = s.k AND t.cur WHEN MATCHED AND t.city <> s.city THEN UPDATE SET cur = false WHEN NOT MATCHED THEN INSERT (id, city, cur) VALUES (s.id, s.city, true);
SELECT * FROM $t WHERE cur;

-- name: rows moved to other partitions
-- runs: v3-mor
CREATE TABLE $t (id INT, d DATE, s STRING) USING iceberg PARTITIONED BY (months(d), truncate(1, s)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, DATE'2024-01-15', 'aa'), (2, DATE'2024-01-20', 'ab'), (3, DATE'2024-02-01', 'ba') AS v(id, d, s);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, DATE'2024-03-01'), (3, NULL) AS v(id, d)) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET d = q.d, s = reverse(t.s);
SELECT * FROM $t WHERE d IS NULL OR d >= DATE'2024-03-01';

-- name: joined by a condition on a partition
-- runs: v2-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 0), (1, 'b', 0), (2, 'a', 0) AS v(id, p, n);
MERGE INTO $t t USING (SELECT 1 AS id UNION ALL SELECT 2) s ON t.id = s.id AND t.p = 'a' WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT (id, p, n) VALUES (s.id, 'new', 0);
MERGE INTO $t t USING (SELECT 1 AS id UNION ALL SELECT 2) s ON t.id = s.id AND t.p IN ('b', 'z') WHEN MATCHED THEN DELETE;

-- name: null-safe keys
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (NULL, 'n') AS v(id, s);
MERGE INTO $t t USING (SELECT * FROM VALUES (NULL, 'nothing'), (5, 'five') AS v(id, s)) q ON t.id <=> q.id WHEN MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT CAST(NULL AS INT) AS id, 'again' AS s) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- name: lists and maps of the source
-- runs: v2-cow
CREATE TABLE $t (id INT, l ARRAY<INT>, m MAP<STRING, STRUCT<x:INT>>) USING iceberg $props;
INSERT INTO $t VALUES (1, array(1), map('a', named_struct('x', 1)));
MERGE INTO $t t USING (SELECT 1 AS id, array(2, 3) AS l, map('b', named_struct('x', 2)) AS m UNION ALL SELECT 2, NULL, map()) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET l = concat(t.l, s.l), m = map_concat(t.m, s.m) WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET l = array('x');

-- name: aggregates in conditions
-- runs: v2-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20) AS v(id, n);
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id AND max(t.n) > 1 WHEN MATCHED THEN DELETE;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND count(*) > 0 THEN DELETE;
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = sum(t.n);
MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = row_number() OVER (ORDER BY t.id);

-- name: small files and row groups
-- runs: v2-mor
CREATE TABLE $t (id BIGINT, s STRING) USING iceberg $props('write.parquet.row-group-size-bytes'='100', 'write.parquet.page-size-bytes'='100');
INSERT INTO $t SELECT id, concat('row ', id) FROM range(0, 200, 1, 1);
MERGE INTO $t t USING (SELECT id * 50 AS id FROM range(0, 6, 1, 1)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = 'hit' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, 'new');
SELECT count(*), count_if(s = 'hit'), max(id) FROM $t;
SELECT * FROM $t WHERE id BETWEEN 149 AND 151;

-- name: conditions about the source alone, whose columns have the names of the target's
-- runs: v1-cow v2-mor v3-mor
CREATE TABLE $t (id INT, k INT, s STRUCT<n: INT>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, NULL), (2, 5, named_struct('n', 5)), (3, NULL, named_struct('n', 1));
MERGE INTO $t AS t USING (SELECT 2 AS id, 9 AS k, named_struct('n', 9) AS s) AS src ON src.k > 2 AND t.id < 3 WHEN MATCHED THEN UPDATE SET k = t.k + 100;
MERGE INTO $t AS t USING (SELECT 2 AS id, 9 AS k, named_struct('n', 9) AS s) AS src ON t.id = src.id OR src.s.n > 6 WHEN MATCHED THEN UPDATE SET k = coalesce(t.k, 0) + 1000;
MERGE INTO $t AS t USING (SELECT 2 AS id, 1 AS k, named_struct('n', 1) AS s) AS src ON src.s.n < 3 AND src.k + t.id > 2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
MERGE INTO $t AS t USING (SELECT 7 AS id, 1 AS k, NULL AS s) AS src ON src.k = 2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k) VALUES (src.id, src.k);
SELECT * FROM $t ORDER BY id;
