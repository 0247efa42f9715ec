-- INSERT: appends, overwrites (static, dynamic, by condition), columns by name, branches.
-- runs: v1 v3

-- name: append values
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a'), (2, 'b'), (3, NULL);
INSERT INTO $t SELECT id + 10, data FROM $t;

-- name: nothing to append
-- runs: v1 v3
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg $props;
INSERT INTO $t SELECT 1L, 'x' WHERE false;
INSERT INTO $t VALUES (1, 'a');
INSERT INTO $t SELECT * FROM $t WHERE id > 100;

-- name: overwrite an unpartitioned table
-- runs: v1 v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a'), (2, 'b');
INSERT OVERWRITE $t VALUES (4, 'd'), (5, NULL);
INSERT OVERWRITE TABLE $t SELECT 1L, 'x' WHERE false;

-- name: overwrite a partitioned table, static mode
-- runs: v1 v3
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, data);
INSERT OVERWRITE $t SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 'a'), (5, 'd') AS v(id, data);

-- name: overwrite a partitioned table, dynamic mode
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v2 v3
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(id, data);
INSERT OVERWRITE $t SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 'a'), (5, 'd') AS v(id, data);
INSERT OVERWRITE $t SELECT /*+ COALESCE(1) */ * FROM VALUES (6, NULL) AS v(id, data);
INSERT OVERWRITE $t SELECT 1L, 'x' WHERE false;

-- name: dynamic overwrite of an unpartitioned table
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v2 v3
CREATE TABLE $t (id BIGINT) USING iceberg $props;
INSERT INTO $t VALUES (1), (2);
INSERT OVERWRITE $t VALUES (3);

-- name: dynamic overwrite by a transform
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v1 v3
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 01:00:00'), (2, TIMESTAMP'2020-01-02 01:00:00') AS v(id, ts);
INSERT OVERWRITE $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, TIMESTAMP'2020-01-01 23:00:00') AS v(id, ts);

-- name: overwrite one partition by its value
-- runs: v1 v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, data);
INSERT OVERWRITE $t PARTITION (data = 'a') SELECT 10L;
-- differs: history | choice | nothing was replaced, so our snapshot is an append, as the specification defines it; Java says overwrite
INSERT OVERWRITE $t PARTITION (data = 'none') VALUES (11);
INSERT INTO $t PARTITION (data = 'b') SELECT 20L;

-- name: a partition whose value is null
-- runs: v2 v3
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, NULL) AS v(id, data);
INSERT OVERWRITE $t PARTITION (data = NULL) SELECT 10L;
INSERT INTO $t PARTITION (data = NULL) SELECT 11L;

-- name: one static and one dynamic partition
-- runs: v2
CREATE TABLE $t (id BIGINT, a STRING, b INT) USING iceberg PARTITIONED BY (a, b) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1) AS v(id, a, b);
INSERT OVERWRITE $t PARTITION (a = 'x', b) SELECT 10L, 1;
INSERT INTO $t PARTITION (b = 9, a) SELECT 11L, 'z';

-- name: one static and one dynamic partition, dynamic mode
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v2
CREATE TABLE $t (id BIGINT, a STRING, b INT) USING iceberg PARTITIONED BY (a, b) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1) AS v(id, a, b);
INSERT OVERWRITE $t PARTITION (a = 'x', b) SELECT 10L, 1;
INSERT OVERWRITE $t PARTITION (a, b) SELECT 11L, 'y', 1;

-- name: a partition clause that names no partition column
-- runs: v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (bucket(2, data)) $props;
INSERT OVERWRITE $t PARTITION (data = 'a') SELECT 10L;
INSERT INTO $t PARTITION (none = 'a') SELECT 10L;
INSERT INTO $t PARTITION (id = 1) SELECT 'x';

-- name: replace where
-- runs: v2 v3
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, data);
INSERT INTO $t REPLACE WHERE data = 'a' SELECT 10L, 'a';
INSERT INTO $t REPLACE WHERE data IN ('b', 'c') SELECT 11L, 'z';
INSERT INTO $t REPLACE WHERE id = 10 AND data = 'a' SELECT 12L, 'q';

-- name: replace where, part of a file
-- runs: v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, data);
-- differs: outcome | choice | files of which only some rows match are rewritten; Java refuses to overwrite part of a file
INSERT INTO $t REPLACE WHERE id = 1 SELECT 10L, 'x';

-- name: columns by name
-- runs: v1 v3
CREATE TABLE $t (id BIGINT, data STRING, n INT) USING iceberg $props;
INSERT INTO $t (data, id, n) VALUES ('a', 1, 5);
INSERT INTO $t BY NAME SELECT 7 AS n, 2L AS id, 'b' AS data;
INSERT INTO $t (id) VALUES (3);
INSERT INTO $t BY NAME SELECT 4L AS id;
INSERT INTO $t BY NAME SELECT 4L AS id, 'x' AS nope;

-- name: too many and too few columns
-- runs: v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg $props;
INSERT INTO $t VALUES (1);
INSERT INTO $t VALUES (1, 'a', 2);
INSERT INTO $t (id, data) VALUES (1);
INSERT INTO $t (id, id) VALUES (1, 2);
INSERT INTO $t (none) VALUES (1);
INSERT INTO $t SELECT 1L;

-- name: a struct with its fields in another order
-- runs: v2
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>) USING iceberg $props;
INSERT INTO $t SELECT 1, named_struct('a', 1, 'b', 'x');
INSERT INTO $t BY NAME SELECT named_struct('b', 'y', 'a', 2) AS s, 2 AS id;
INSERT INTO $t SELECT 3, named_struct('x', 3, 'y', 'z');
INSERT INTO $t SELECT 4, named_struct('a', 4);

-- name: several inserts of one query
-- runs: v2 v3
CREATE TABLE $t (id INT, data STRING) USING iceberg $props;
CREATE TABLE $db.u (id INT) USING iceberg $props;
FROM (SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, data)) q INSERT INTO $t SELECT id, data INSERT INTO $db.u SELECT id WHERE id > 1;

-- name: a branch
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, data);
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (3, 'a');
INSERT OVERWRITE $t.branch_b VALUES (4, 'c');
INSERT INTO $t VALUES (5, 'main');
SELECT * FROM $t.branch_b;

-- name: a branch of a partitioned table, dynamically
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v2
CREATE TABLE $t (id BIGINT, data STRING) USING iceberg PARTITIONED BY (data) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, data);
ALTER TABLE $t CREATE BRANCH b;
INSERT OVERWRITE $t.branch_b VALUES (4, 'a');
SELECT * FROM $t VERSION AS OF 'b';

-- name: a branch that does not exist, a tag, a snapshot
-- runs: v2
CREATE TABLE $t (id BIGINT) USING iceberg $props;
INSERT INTO $t VALUES (1);
ALTER TABLE $t CREATE TAG g;
INSERT INTO $t.branch_none VALUES (2);
INSERT INTO $t.tag_g VALUES (2);
INSERT INTO $t.snapshot_id_$s1 VALUES (2);
INSERT OVERWRITE $t.snapshot_id_$s1 VALUES (2);

-- name: null partitions of every kind
-- runs: v1 v2
CREATE TABLE $t (i INT, l BIGINT, s STRING, d DATE, ts TIMESTAMP, b BINARY, dec DECIMAL(9, 2)) USING iceberg PARTITIONED BY (bucket(2, i), truncate(10, l), s, months(d), hours(ts), truncate(1, b), dec) $props;
INSERT INTO $t VALUES (1, 15, 's', DATE'2020-02-29', TIMESTAMP'2020-02-29 13:30:00', X'0102', 1.50);
INSERT INTO $t VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM $t WHERE s IS NULL;
SELECT partition.s, partition.l_trunc, partition.dec, partition.d_month, partition.ts_hour FROM $t.files;

-- name: partitions by special texts
-- runs: v2
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, ''), (2, 'a/b'), (3, 'ü ñ'), (4, 'null'), (5, NULL), (6, 'x=y&z'), (7, '%20') AS v(id, p);
SELECT id FROM $t WHERE p = 'a/b';
SELECT id FROM $t WHERE p = '';
DELETE FROM $t WHERE p = 'x=y&z';

-- name: partitions by floats
-- runs: v2 v3
CREATE TABLE $t (id INT, f FLOAT, d DOUBLE) USING iceberg PARTITIONED BY (f, d) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, FLOAT('NaN'), DOUBLE('NaN')), (2, FLOAT(0.0), 0.0D), (3, FLOAT('Infinity'), DOUBLE('-Infinity')), (4, NULL, NULL) AS v(id, f, d);
SELECT id FROM $t WHERE f = 0 OR isnan(d);
DELETE FROM $t WHERE isnan(f);
DELETE FROM $t WHERE d = DOUBLE('-Infinity');

-- name: a query with an order and a limit
-- runs: v2
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t SELECT * FROM VALUES (3, 'c'), (1, 'a'), (2, 'b') AS v(id, s) ORDER BY id LIMIT 2;
INSERT INTO $t SELECT id, upper(s) FROM $t WHERE id = 1 UNION ALL SELECT 9, 'z';

-- name: a table of another spec in between
-- runs: v1 v3
CREATE TABLE $t (id INT, a STRING, b STRING) USING iceberg PARTITIONED BY (a) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 'p'), (2, 'y', 'q') AS v(id, a, b);
ALTER TABLE $t ADD PARTITION FIELD b;
INSERT OVERWRITE $t PARTITION (a = 'x') SELECT 3, 'r';
INSERT OVERWRITE $t VALUES (4, 'z', 'z');

-- name: dynamic overwrite after the spec changed
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
-- runs: v2
CREATE TABLE $t (id INT, a STRING, b STRING) USING iceberg PARTITIONED BY (a) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 'p'), (2, 'y', 'q') AS v(id, a, b);
ALTER TABLE $t REPLACE PARTITION FIELD a WITH b;
INSERT OVERWRITE $t VALUES (3, 'x', 'p');

-- name: insert into a table that does not exist
-- runs: v2
INSERT INTO $db.none VALUES (1);
INSERT OVERWRITE $db.none VALUES (1);

-- name: required columns
-- runs: v1 v3
CREATE TABLE $t (id INT NOT NULL, s STRUCT<x:INT NOT NULL, y:INT> NOT NULL) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('x', 1, 'y', NULL));
INSERT INTO $t VALUES (NULL, named_struct('x', 1, 'y', 2));
INSERT INTO $t VALUES (2, NULL);
INSERT INTO $t VALUES (3, named_struct('x', NULL, 'y', 2));
INSERT INTO $t SELECT id + 1, s FROM $t;

-- name: data files of avro and orc
-- runs: v2-mor
CREATE TABLE $t (id INT, s STRING, ts TIMESTAMP, a ARRAY<INT>) USING iceberg $props('write.format.default'='avro');
INSERT INTO $t VALUES (1, 'a', TIMESTAMP'2020-01-01 00:00:00', array(1, NULL));
ALTER TABLE $t SET TBLPROPERTIES ('write.format.default'='orc');
INSERT INTO $t VALUES (2, 'b', NULL, NULL);
DELETE FROM $t WHERE id = 1;
SELECT file_format, record_count FROM $t.all_data_files;

-- name: insert from the table itself, partitioned
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (truncate(2, s)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'aaa'), (2, 'bbb') AS v(id, s);
INSERT INTO $t SELECT id + 2, reverse(concat(s, 'x')) FROM $t;
INSERT OVERWRITE $t SELECT id, s FROM $t WHERE id > 1;
SELECT partition.s_trunc, record_count FROM $t.files;

-- name: insert sorted from an ordered query
-- runs: v1
CREATE TABLE $t (id INT, p INT) USING iceberg PARTITIONED BY (bucket(2, p)) $props;
INSERT INTO $t SELECT CAST(id AS INT), CAST(id % 5 AS INT) FROM range(0, 20, 1, 2) ORDER BY id DESC;
INSERT INTO $t SELECT id + 100, p FROM $t DISTRIBUTE BY p SORT BY id;
SELECT count(*), count(DISTINCT p), sum(p) FROM $t;

-- name: columns in a list and static partitions
-- runs: v3
CREATE TABLE $t (id INT, s STRING, p STRING, q INT) USING iceberg PARTITIONED BY (p, q) $props;
INSERT INTO $t PARTITION (p = 'a', q = 1) VALUES (1, 'x');
INSERT INTO $t PARTITION (p = 'a', q) VALUES (2, 'y', 5);
INSERT INTO $t PARTITION (p = 'b', q = 2) (s, id) VALUES ('z', 3);
INSERT INTO $t PARTITION (p = 'b', p = 'c') VALUES (4, 'w', 1);
INSERT INTO $t PARTITION (q = 'no number', p = 'c') VALUES (5, 'v');
SELECT * FROM $t;

-- name: by name with nested fields
-- runs: v2
CREATE TABLE $t (id INT, s STRUCT<a:INT, b:STRING>, l ARRAY<STRUCT<x:INT, y:INT>>) USING iceberg $props;
INSERT INTO $t BY NAME SELECT array(named_struct('y', 2, 'x', 1)) AS l, named_struct('b', 'q', 'a', 9) AS s, 1 AS id;
INSERT INTO $t BY NAME SELECT 2 AS id;
INSERT INTO $t BY NAME SELECT 3 AS id, 4 AS none;
INSERT INTO $t BY NAME SELECT 3 AS ID, NULL AS S;
SELECT id, s.a, l[0].x FROM $t;

-- name: replace where over partitions
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, p);
INSERT INTO $t REPLACE WHERE p IN ('a', 'b') SELECT 10, 'a';
INSERT INTO $t REPLACE WHERE p IS NULL OR p > 'c' SELECT * FROM $t WHERE false;
INSERT INTO $t REPLACE WHERE true SELECT 99, 'z';
-- differs: history | choice | nothing was replaced, so our snapshot is an append, as the specification defines it; Java says overwrite
INSERT INTO $t REPLACE WHERE p = 'none' SELECT 11, 'd';

-- name: partitions of times, dates and bytes are overwritten by their values
-- runs: v2
-- set: spark.sql.session.timeZone=America/New_York
CREATE TABLE $t (id INT, ts TIMESTAMP, d DATE, b BINARY) USING iceberg PARTITIONED BY (ts, d, b) $props;
INSERT INTO $t PARTITION (ts = '2020-01-01 00:00:00', d = '2020-2-2', b = X'61') VALUES (1);
INSERT INTO $t PARTITION (ts = '2020-01-01 05:00:00', d = '2020-2-2', b = X'62') VALUES (2);
INSERT OVERWRITE $t PARTITION (ts = TIMESTAMP '2020-01-01 00:00:00', d = DATE '2020-02-02', b = X'61') VALUES (3);
SELECT * FROM $t ORDER BY id;
INSERT OVERWRITE $t PARTITION (ts = '2020-01-01 10:00:00 UTC', d = '2020-02-02', b = 'b') VALUES (4);
SELECT * FROM $t ORDER BY id;
