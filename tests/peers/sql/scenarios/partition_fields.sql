-- Partition evolution: fields added, dropped, replaced and renamed; rows and metadata of old specs.
-- runs: v1 v2 v3

-- name: add an identity field
CREATE TABLE $t (id BIGINT, c STRING, ts TIMESTAMP) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a', TIMESTAMP'2020-01-01 00:00:00');
ALTER TABLE $t ADD PARTITION FIELD c;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (2L, 'b', TIMESTAMP'2020-01-02 00:00:00'), (3L, 'a', NULL) AS v(id, c, ts);
SELECT * FROM $t WHERE c = 'a';

-- name: add transforms
CREATE TABLE $t (id BIGINT, c STRING, ts TIMESTAMP) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD bucket(4, id);
ALTER TABLE $t ADD PARTITION FIELD truncate(c, 4);
ALTER TABLE $t ADD PARTITION FIELD truncate(3, c);
ALTER TABLE $t ADD PARTITION FIELD years(ts);
INSERT INTO $t VALUES (1, 'abcdef', TIMESTAMP'2020-01-01 00:00:00');

-- name: add each time transform
-- runs: v2
CREATE TABLE $t (a TIMESTAMP, b TIMESTAMP, c DATE, d TIMESTAMP_NTZ) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD month(a);
ALTER TABLE $t ADD PARTITION FIELD hour(b);
ALTER TABLE $t ADD PARTITION FIELD days(c);
ALTER TABLE $t ADD PARTITION FIELD year(d);
ALTER TABLE $t ADD PARTITION FIELD hours(c);
ALTER TABLE $t ADD PARTITION FIELD day(b);

-- name: add with a name
CREATE TABLE $t (id BIGINT, ts TIMESTAMP) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD bucket(16, id) AS shard;
ALTER TABLE $t ADD PARTITION FIELD days(ts) AS id;
ALTER TABLE $t ADD PARTITION FIELD days(ts) AS shard;
ALTER TABLE $t ADD PARTITION FIELD bucket(16, id);
ALTER TABLE $t ADD PARTITION FIELD none;

-- name: drop fields
CREATE TABLE $t (id BIGINT, c STRING, ts TIMESTAMP) USING iceberg PARTITIONED BY (c, days(ts), bucket(16, id)) $props;
INSERT INTO $t VALUES (1, 'a', TIMESTAMP'2020-01-01 00:00:00');
ALTER TABLE $t DROP PARTITION FIELD c;
ALTER TABLE $t DROP PARTITION FIELD days(ts);
INSERT INTO $t VALUES (2, 'b', TIMESTAMP'2020-01-02 00:00:00');
ALTER TABLE $t DROP PARTITION FIELD bucket(16, id);
INSERT INTO $t VALUES (3, 'c', TIMESTAMP'2020-01-03 00:00:00');
SELECT id FROM $t WHERE c < 'c' AND ts > TIMESTAMP'2019-01-01 00:00:00';
DELETE FROM $t WHERE c = 'a';

-- name: drop by name
CREATE TABLE $t (id BIGINT, ts TIMESTAMP) USING iceberg PARTITIONED BY (bucket(16, id)) $props;
ALTER TABLE $t ADD PARTITION FIELD days(ts) AS d;
ALTER TABLE $t DROP PARTITION FIELD d;
ALTER TABLE $t DROP PARTITION FIELD id_bucket;
ALTER TABLE $t DROP PARTITION FIELD none;
ALTER TABLE $t DROP PARTITION FIELD bucket(8, id);

-- name: drop and add again
CREATE TABLE $t (id BIGINT, c STRING) USING iceberg PARTITIONED BY (c) $props;
INSERT INTO $t VALUES (1, 'a');
ALTER TABLE $t DROP PARTITION FIELD c;
INSERT INTO $t VALUES (2, 'b');
ALTER TABLE $t ADD PARTITION FIELD c;
INSERT INTO $t VALUES (3, 'c');
SELECT partition, spec_id, record_count FROM $t.files ORDER BY spec_id, record_count;
DELETE FROM $t WHERE c IN ('a', 'c');

-- name: replace
CREATE TABLE $t (id BIGINT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 00:00:00'), (2, TIMESTAMP'2020-01-01 05:00:00') AS v(id, ts);
ALTER TABLE $t REPLACE PARTITION FIELD days(ts) WITH hours(ts);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, TIMESTAMP'2020-01-01 00:00:00'), (4, TIMESTAMP'2020-01-01 05:00:00') AS v(id, ts);
SELECT id FROM $t WHERE ts = TIMESTAMP'2020-01-01 05:00:00';
DELETE FROM $t WHERE ts >= TIMESTAMP'2020-01-01 05:00:00' AND ts < TIMESTAMP'2020-01-01 06:00:00';

-- name: replace and rename
-- runs: v1 v2
CREATE TABLE $t (id BIGINT, ts TIMESTAMP) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD days(ts) AS d;
ALTER TABLE $t REPLACE PARTITION FIELD days(ts) WITH hours(ts) AS h;
ALTER TABLE $t REPLACE PARTITION FIELD h WITH years(ts) AS h;
ALTER TABLE $t REPLACE PARTITION FIELD none WITH id;
ALTER TABLE $t REPLACE PARTITION FIELD h WITH bucket(2, id);

-- name: drop a column of an old field
CREATE TABLE $t (id BIGINT, c STRING, d STRING) USING iceberg PARTITIONED BY (c) $props;
INSERT INTO $t VALUES (1, 'a', 'x');
ALTER TABLE $t DROP PARTITION FIELD c;
ALTER TABLE $t DROP COLUMN c;
INSERT INTO $t VALUES (2, 'y');
SELECT * FROM $t;
SELECT record_count, spec_id FROM $t.files;

-- name: drop a column of an old time field
-- runs: v1 v2
CREATE TABLE $t (id BIGINT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) $props;
INSERT INTO $t VALUES (1, TIMESTAMP'2020-01-01 00:00:00');
ALTER TABLE $t DROP PARTITION FIELD days(ts);
INSERT INTO $t VALUES (2, TIMESTAMP'2020-01-02 00:00:00');
SELECT spec_id, record_count FROM $t.partitions;
ALTER TABLE $t DROP COLUMN ts;
SELECT * FROM $t;
INSERT INTO $t VALUES (3);

-- name: add a column again after its field went
-- runs: v1 v2
CREATE TABLE $t (id BIGINT, c STRING) USING iceberg PARTITIONED BY (c) $props;
INSERT INTO $t VALUES (1, 'a');
ALTER TABLE $t DROP PARTITION FIELD c;
ALTER TABLE $t DROP COLUMN c;
ALTER TABLE $t ADD COLUMN c STRING;
ALTER TABLE $t ADD PARTITION FIELD c;
-- differs v1: outcome | java | apache/iceberg issue 7415: Java cannot make partitions of a spec with a field whose column was dropped
INSERT INTO $t VALUES (2, 'b');
SELECT * FROM $t WHERE c = 'b';

-- name: rename the source of a field
-- runs: v1 v3
CREATE TABLE $t (id BIGINT, c STRING) USING iceberg PARTITIONED BY (c, bucket(2, id)) $props;
INSERT INTO $t VALUES (1, 'a');
ALTER TABLE $t RENAME COLUMN c TO d;
INSERT INTO $t VALUES (2, 'b');
SELECT partition.c, partition.id_bucket FROM $t.files;
SELECT * FROM $t WHERE d = 'b';

-- name: widen the source of a field
-- runs: v2
CREATE TABLE $t (id INT, d DECIMAL(5, 2)) USING iceberg PARTITIONED BY (truncate(10, id), d) $props;
INSERT INTO $t VALUES (15, 1.25);
ALTER TABLE $t ALTER COLUMN id TYPE BIGINT;
ALTER TABLE $t ALTER COLUMN d TYPE DECIMAL(10, 2);
INSERT INTO $t VALUES (3000000005, 12345678.25);
SELECT * FROM $t WHERE id > 14;
SELECT * FROM $t WHERE d = 1.25;

-- name: changes of rows over several specs
-- runs: v2-cow v2-mor v3-mor
CREATE TABLE $t (id INT, a STRING, b STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 'p'), (2, 'y', 'q') AS v(id, a, b);
ALTER TABLE $t ADD PARTITION FIELD a;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'x', 'p'), (4, 'y', 'q') AS v(id, a, b);
ALTER TABLE $t ADD PARTITION FIELD bucket(2, b);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (5, 'x', 'p'), (6, 'y', 'q') AS v(id, a, b);
UPDATE $t SET b = 'z' WHERE id % 2 = 1;
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 'm'), (6, 'm'), (7, 'm') AS s(id, a)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a);
DELETE FROM $t WHERE a = 'x';

-- name: filters over several specs
-- runs: v1 v2
CREATE TABLE $t (id INT, ts TIMESTAMP, s STRING) USING iceberg PARTITIONED BY (days(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 00:00:00', 'aa'), (2, TIMESTAMP'2020-01-02 12:00:00', 'ab') AS v(id, ts, s);
ALTER TABLE $t REPLACE PARTITION FIELD days(ts) WITH months(ts);
ALTER TABLE $t ADD PARTITION FIELD truncate(1, s);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, TIMESTAMP'2020-01-02 00:00:00', 'ab'), (4, TIMESTAMP'2020-02-02 12:00:00', 'ba'), (5, NULL, NULL) AS v(id, ts, s);
SELECT id FROM $t WHERE ts >= TIMESTAMP'2020-01-02 00:00:00' AND s LIKE 'a%';
SELECT id FROM $t WHERE ts IS NULL OR s > 'ab';
SELECT id FROM $t WHERE date(ts) = DATE'2020-01-02';
SELECT id FROM $t WHERE s = 'ab' AND ts < TIMESTAMP'2020-01-02 06:00:00';

-- name: metadata tables over several specs
-- runs: v2
CREATE TABLE $t (id INT, a STRING) USING iceberg PARTITIONED BY (a) $props;
INSERT INTO $t VALUES (1, 'x');
ALTER TABLE $t ADD PARTITION FIELD bucket(2, id) AS b;
INSERT INTO $t VALUES (2, 'y');
ALTER TABLE $t DROP PARTITION FIELD a;
INSERT INTO $t VALUES (3, 'z');
SELECT partition, spec_id, record_count FROM $t.files;
SELECT partition, spec_id, record_count, file_count FROM $t.partitions;
SELECT partition FROM $t.partitions WHERE partition.b IS NULL;
SELECT count(*) FROM $t.files WHERE partition.a = 'x';

-- name: write order beside a new field
-- runs: v2
CREATE TABLE $t (id INT, a STRING) USING iceberg $props;
ALTER TABLE $t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC;
ALTER TABLE $t ADD PARTITION FIELD a;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x'), (2, 'x'), (3, 'y') AS v(id, a);
SELECT record_count, sort_order_id FROM $t.files;

-- name: names of fields that are taken
-- runs: v2
CREATE TABLE $t (id BIGINT, ts TIMESTAMP, ts_day DATE) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD days(ts);
ALTER TABLE $t ADD PARTITION FIELD days(ts) AS day;
ALTER TABLE $t ADD PARTITION FIELD hours(ts);
ALTER TABLE $t ADD COLUMN day INT;
INSERT INTO $t VALUES (1, TIMESTAMP'2024-04-04 04:04:04', NULL);
SELECT partition FROM $t.files;

-- name: overwrite over several specs
-- runs: v1
-- set: spark.sql.sources.partitionOverwriteMode=dynamic
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
ALTER TABLE $t ADD PARTITION FIELD truncate(10, id);
INSERT INTO $t VALUES (11, 'a'), (12, 'b');
INSERT OVERWRITE $t VALUES (13, 'a');
SELECT partition.p, partition.id_trunc, spec_id, record_count FROM $t.files;

-- name: nested sources of fields
-- runs: v3
CREATE TABLE $t (id INT, s STRUCT<a:STRUCT<b:INT>, ts:TIMESTAMP>) USING iceberg $props;
ALTER TABLE $t ADD PARTITION FIELD s.a.b;
ALTER TABLE $t ADD PARTITION FIELD days(s.ts) AS day;
INSERT INTO $t VALUES (1, named_struct('a', named_struct('b', 7), 'ts', TIMESTAMP'2024-01-01 10:00:00'));
INSERT INTO $t VALUES (2, NULL);
SELECT id FROM $t WHERE s.a.b = 7 AND s.ts < TIMESTAMP'2025-01-01 00:00:00';
DELETE FROM $t WHERE s.a.b IS NULL;

-- name: the same spec twice
-- runs: v2
CREATE TABLE $t (id BIGINT, c STRING) USING iceberg PARTITIONED BY (c) $props;
INSERT INTO $t VALUES (1, 'a');
ALTER TABLE $t ADD PARTITION FIELD bucket(4, id);
ALTER TABLE $t DROP PARTITION FIELD bucket(4, id);
INSERT INTO $t VALUES (2, 'b');
ALTER TABLE $t ADD PARTITION FIELD bucket(4, id);
SELECT DISTINCT spec_id FROM $t.files;
