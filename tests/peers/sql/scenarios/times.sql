-- Times with and without a zone, under sessions in other zones.
-- runs: v2

-- name: both kinds of time
-- runs: v1 v2 v3
CREATE TABLE $t (id INT, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING iceberg $props;
INSERT INTO $t VALUES (1, TIMESTAMP'2020-03-29 02:30:00', TIMESTAMP_NTZ'2020-03-29 02:30:00');
INSERT INTO $t VALUES (2, TIMESTAMP'2020-03-29 02:30:00+05:00', NULL);
SELECT * FROM $t WHERE ts < TIMESTAMP'2020-03-29 00:00:00';
SELECT id FROM $t WHERE tn = TIMESTAMP_NTZ'2020-03-29 02:30:00';

-- name: a session in Los Angeles
-- runs: v2-cow v3-mor
-- set: spark.sql.session.timeZone=America/Los_Angeles
CREATE TABLE $t (id INT, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (days(ts), hours(tn)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 23:00:00', TIMESTAMP_NTZ'2020-01-01 23:00:00'), (2, TIMESTAMP'2020-11-01 01:30:00', TIMESTAMP_NTZ'2020-11-01 01:30:00') AS v(id, ts, tn);
SELECT id FROM $t WHERE ts >= TIMESTAMP'2020-01-02 00:00:00';
SELECT id FROM $t WHERE date(ts) = DATE'2020-01-01';
SELECT id, CAST(ts AS STRING), CAST(tn AS STRING), hour(ts) FROM $t;
SELECT partition FROM $t.files;
UPDATE $t SET ts = tn, tn = ts WHERE id = 1;
DELETE FROM $t WHERE ts = '2020-11-01 01:30:00';

-- name: a session in Kathmandu
-- set: spark.sql.session.timeZone=Asia/Kathmandu
CREATE TABLE $t USING iceberg PARTITIONED BY (hours(ts)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2020-01-01 00:15:00'), (2, TIMESTAMP'1969-12-31 23:59:59.999999') AS v(id, ts);
SELECT id FROM $t WHERE ts > TIMESTAMP'2020-01-01 00:00:00';
SELECT id FROM $t WHERE ts < DATE'1970-01-01';
SELECT lake.system.days(ts) AS c1, lake.system.hours(ts) AS c2 FROM $t;
SET spark.sql.session.timeZone=UTC;
SELECT id, CAST(ts AS STRING) FROM $t;
SELECT id FROM $t WHERE date(ts) = DATE'2019-12-31';

-- name: the type of a bare timestamp
-- set: spark.sql.timestampType=TIMESTAMP_NTZ
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg $props;
INSERT INTO $t VALUES (1, TIMESTAMP'2020-01-01 00:00:00');
CREATE TABLE $db.u USING iceberg $props AS SELECT TIMESTAMP'2020-01-01 00:00:00' AS a, CAST('2020-01-01' AS TIMESTAMP_LTZ) AS b;

-- name: create as select with both
CREATE TABLE $t USING iceberg $props AS SELECT TIMESTAMP_NTZ'2020-01-01 00:00:00' AS a, TIMESTAMP_LTZ'2020-01-01 00:00:00' AS b, DATE'2020-01-01' AS c;

-- name: early and late
-- runs: v1 v3
CREATE TABLE $t (id INT, d DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (years(d), months(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, DATE'0001-01-01', TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00'), (2, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'), (3, DATE'1582-10-10', TIMESTAMP'1582-10-10 00:00:00', TIMESTAMP_NTZ'1582-10-10 00:00:00') AS v(id, d, ts, tn);
SELECT id FROM $t WHERE d < DATE'1000-01-01';
SELECT id FROM $t WHERE ts > TIMESTAMP'9999-01-01 00:00:00';
SELECT id FROM $t WHERE tn < TIMESTAMP_NTZ'1600-01-01 00:00:00';
SELECT partition FROM $t.files;

-- name: time travel in another zone
-- set: spark.sql.session.timeZone=America/Los_Angeles
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT * FROM $t TIMESTAMP AS OF TIMESTAMP'$at1 UTC';
SELECT * FROM $t TIMESTAMP AS OF '$at1 UTC';

-- name: functions of the catalog on times
SELECT lake.system.years(DATE'1969-12-31') AS c1, lake.system.months(DATE'1969-12-31') AS c2, lake.system.days(DATE'1969-12-31') AS c3, lake.system.years(TIMESTAMP'1970-01-01 00:00:00') AS c4, lake.system.hours(TIMESTAMP'1969-12-31 23:59:59') AS c5, lake.system.days(TIMESTAMP_NTZ'2020-02-29 00:00:00') AS c6;
SELECT lake.system.years(NULL) AS c1, lake.system.days(CAST(NULL AS DATE)) AS c2;
SELECT lake.system.hours(DATE'2020-01-01') AS c1;
SELECT lake.system.years('2020-01-01') AS c1;
SELECT lake.system.days() AS c1;

-- name: functions of the catalog on values
SELECT lake.system.bucket(16, 34) AS c1, lake.system.bucket(16, 34L) AS c2, lake.system.bucket(16, 'iceberg') AS c3, lake.system.bucket(16, X'00010203') AS c4, lake.system.bucket(16, DATE'2017-11-16') AS c5, lake.system.bucket(16, TIMESTAMP'2017-11-16 22:31:08') AS c6, lake.system.bucket(16, 14.20) AS c7, lake.system.bucket(16, CAST(NULL AS INT)) AS c8;
SELECT lake.system.truncate(10, 15) AS c1, lake.system.truncate(10, -1) AS c2, lake.system.truncate(10, -1L) AS c3, lake.system.truncate(2, 'iceberg') AS c4, lake.system.truncate(2, X'010203') AS c5, lake.system.truncate(50, 10.65) AS c6, lake.system.truncate(3, '😀😁😂x') AS c7;
SELECT lake.system.bucket(0, 1) AS c1;
SELECT lake.system.truncate(0, 1) AS c1;
SELECT lake.system.bucket(4, 1.5D) AS c1;
SELECT lake.system.bucket(4, true) AS c1;
SELECT lake.system.truncate(2, true) AS c1;
SELECT lake.system.bucket('x', 1) AS c1;
SELECT lake.system.truncate(10, -2147483648) AS c1;
SELECT lake.system.none(1) AS c1;
SELECT lake.system.iceberg_version() IS NOT NULL AS c1;

-- name: comparisons of both kinds of time
-- runs: v3
CREATE TABLE $t (id INT, a TIMESTAMP, b TIMESTAMP_NTZ, d DATE) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2024-06-01 00:00:00', TIMESTAMP_NTZ'2024-06-01 00:00:00', DATE'2024-06-01'), (2, TIMESTAMP'2024-06-01 12:00:00', TIMESTAMP_NTZ'2024-05-31 12:00:00', DATE'2024-05-31') AS v(id, a, b, d);
SELECT id FROM $t WHERE a = b;
SELECT id FROM $t WHERE d = a;
SELECT id FROM $t WHERE b >= d;
SELECT id FROM $t WHERE a < '2024-06-01 06:00:00';
SELECT id FROM $t WHERE b > TIMESTAMP_LTZ'2024-06-01 00:00:00+02:00';

-- name: the hour that happens twice
-- runs: v2-mor
-- set: spark.sql.session.timeZone=Europe/Berlin
CREATE TABLE $t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (hours(ts)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2024-10-27 02:30:00+02:00'), (2, TIMESTAMP'2024-10-27 02:30:00+01:00'), (3, TIMESTAMP'2024-03-31 02:30:00') AS v(id, ts);
SELECT id, CAST(ts AS STRING), hour(ts) FROM $t;
SELECT id FROM $t WHERE ts = TIMESTAMP'2024-10-27 02:30:00';
DELETE FROM $t WHERE ts > TIMESTAMP'2024-10-27 02:30:00' AND ts < TIMESTAMP'2024-10-27 03:00:00';
UPDATE $t SET ts = ts + INTERVAL '1' DAY;
SELECT id, CAST(ts AS STRING) FROM $t;

-- name: microseconds
-- runs: v1
CREATE TABLE $t (id INT, ts TIMESTAMP, tn TIMESTAMP_NTZ) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, TIMESTAMP'2024-01-01 00:00:00.000001', TIMESTAMP_NTZ'2024-01-01 00:00:00.999999'), (2, TIMESTAMP'1960-01-01 00:00:00.000001', TIMESTAMP_NTZ'1960-01-01 00:00:00.999999') AS v(id, ts, tn);
SELECT id FROM $t WHERE ts > TIMESTAMP'2024-01-01 00:00:00';
SELECT id FROM $t WHERE tn = TIMESTAMP_NTZ'1960-01-01 00:00:00.999999';
SELECT id, date_trunc('MILLISECOND', ts), unix_micros(ts) FROM $t;
INSERT INTO $t VALUES (3, '2024-01-01 00:00:00.1234567', NULL);
SELECT ts FROM $t WHERE id = 3;

-- name: months and years before 1970
-- runs: v2
CREATE TABLE $t (id INT, d DATE) USING iceberg PARTITIONED BY (months(d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, DATE'1969-12-31'), (2, DATE'1970-01-01'), (3, DATE'1582-10-15'), (4, DATE'1582-10-04') AS v(id, d);
SELECT partition, record_count FROM $t.files;
SELECT id FROM $t WHERE d < DATE'1970-01-01';
SELECT id FROM $t WHERE d BETWEEN DATE'1582-10-01' AND DATE'1582-10-14';
DELETE FROM $t WHERE d >= DATE'1969-12-01' AND d < DATE'1970-01-01';
