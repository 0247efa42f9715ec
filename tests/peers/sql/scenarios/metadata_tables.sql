-- Metadata tables: files, entries, manifests, snapshots, history, refs, partitions, deletes; with filters and time travel.
-- runs: v2

-- name: snapshots and history
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT snapshot_id, parent_id, operation, manifest_list IS NOT NULL AS l, committed_at IS NOT NULL AS c FROM $t.snapshots ORDER BY committed_at;
SELECT snapshot_id, parent_id, is_current_ancestor FROM $t.history ORDER BY made_current_at;
SELECT s.operation, h.is_current_ancestor FROM $t.history h JOIN $t.snapshots s ON h.snapshot_id = s.snapshot_id;
SELECT summary['added-records'], summary['total-records'] FROM $t.snapshots;

-- name: files
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1.5D), (2, NULL, DOUBLE('NaN')) AS v(id, s, d);
-- differs: outcome | choice | Spark's own Parquet writer counts no NaN, so that column has no bounds; no sort order is null, where Java writes 0
SELECT content, file_format, spec_id, record_count, column_sizes IS NOT NULL AS has_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds, equality_ids, sort_order_id FROM $t.files;
SELECT content, record_count FROM $t.data_files;
SELECT content, record_count FROM $t.delete_files;
SELECT content, record_count FROM $t.all_data_files;
SELECT content, record_count FROM $t.all_files;

-- name: readable metrics
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1.5D, true, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', 1.25, X'0a'), (2, NULL, DOUBLE('NaN'), false, NULL, NULL, NULL, NULL) AS v(id, s, d, b, dt, ts, dec, bin);
-- differs: outcome | choice | Spark's own Parquet writer counts no NaN, so that column has no bounds
SELECT readable_metrics.id.lower_bound, readable_metrics.id.upper_bound, readable_metrics.id.value_count, readable_metrics.s.null_value_count, readable_metrics.s.lower_bound AS s_low, readable_metrics.d.nan_value_count, readable_metrics.d.upper_bound AS d_up FROM $t.files;
SELECT readable_metrics.dt.lower_bound AS a, readable_metrics.ts.upper_bound AS b, readable_metrics.dec.lower_bound AS c, readable_metrics.bin.upper_bound AS d, readable_metrics.b.upper_bound AS e FROM $t.files;

-- name: nested readable metrics
CREATE TABLE $t (id INT, s STRUCT<x:INT, y:STRING>, a ARRAY<INT>, m MAP<STRING, INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, named_struct('x', 5, 'y', 'abc'), array(1, 2), map('k', 1));
SELECT readable_metrics.`s.x`.lower_bound, readable_metrics.`s.y`.upper_bound FROM $t.files;
SELECT value_counts, null_value_counts, lower_bounds FROM $t.files;

-- name: files of a partitioned table
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg PARTITIONED BY (p, bucket(2, id)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(id, p);
SELECT partition, record_count FROM $t.files;
SELECT partition.p FROM $t.files WHERE partition.p IS NOT NULL AND record_count = 1;
SELECT partition, record_count, file_count, spec_id, position_delete_record_count, position_delete_file_count, equality_delete_record_count, equality_delete_file_count FROM $t.partitions;

-- name: entries
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT INTO $t VALUES (3);
DELETE FROM $t WHERE id = 3;
SELECT status, snapshot_id, data_file.record_count FROM $t.entries;
SELECT status, sequence_number, file_sequence_number FROM $t.entries WHERE status < 2;
SELECT status, snapshot_id, data_file.record_count FROM $t.all_entries;
SELECT readable_metrics.id.upper_bound FROM $t.entries WHERE status <> 2;

-- name: manifests
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'c') AS v(id, p);
INSERT INTO $t VALUES (3, NULL);
-- differs: outcome | java | Java shows a missing bound as the text 'null'
SELECT content, partition_spec_id, added_snapshot_id, added_data_files_count, existing_data_files_count, deleted_data_files_count, added_delete_files_count, partition_summaries FROM $t.manifests;
SELECT added_data_files_count FROM $t.all_manifests WHERE content = 0;
SELECT added_data_files_count, reference_snapshot_id FROM $t.all_manifests WHERE reference_snapshot_id = $s1;

-- name: delete files
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b') AS v(id, p);
DELETE FROM $t WHERE id = 1;
SELECT content, record_count, partition FROM $t.delete_files;
SELECT content, record_count FROM $t.all_delete_files;
SELECT pos, partition, spec_id, delete_file_path IS NOT NULL AS has_file FROM $t.position_deletes;
SELECT content, added_delete_files_count, deleted_delete_files_count FROM $t.manifests;
SELECT partition, record_count, position_delete_record_count, position_delete_file_count FROM $t.partitions;

-- name: refs
-- runs: v1 v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b RETAIN 5 DAYS;
ALTER TABLE $t CREATE TAG g;
SELECT * FROM $t.refs;
SELECT name FROM $t.refs WHERE type = 'TAG';

-- name: metadata log
CREATE TABLE $t (id INT) USING iceberg $props;
INSERT INTO $t VALUES (1);
INSERT INTO $t VALUES (2);
SELECT count(*), count(latest_snapshot_id), max(latest_sequence_number) FROM $t.metadata_log_entries;

-- name: an empty table
-- runs: v1 v3
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
SELECT count(*) FROM $t.files;
SELECT count(*) FROM $t.snapshots;
SELECT count(*) FROM $t.manifests;
SELECT count(*) FROM $t.partitions;
SELECT count(*) FROM $t.entries;
SELECT count(*) FROM $t.refs;
SELECT count(*) FROM $t.history;
SELECT count(*) FROM $t.position_deletes;
SELECT count(*) FROM $t.none;

-- name: time travel of metadata tables
-- runs: v1 v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
SELECT record_count FROM $t.files VERSION AS OF $s1;
SELECT count(*) FROM $t.files VERSION AS OF $s2;
SELECT count(*) FROM $t.manifests VERSION AS OF $s1;
-- differs: outcome | choice | snapshots is not of one snapshot, so none can be chosen; Java ignores the choice
SELECT count(*) FROM $t.snapshots VERSION AS OF $s1;

-- name: time travel over a change of columns
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id, 'a' AS s;
ALTER TABLE $t ADD COLUMN n INT;
INSERT INTO $t VALUES (2, 'b', 3);
SELECT readable_metrics.id.upper_bound FROM $t.files VERSION AS OF $s1;
SELECT readable_metrics.n.upper_bound FROM $t.files;

-- name: metadata columns
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b') AS v(id, p);
SELECT id, _pos, _spec_id, _partition, _file IS NOT NULL AS has_file, _deleted FROM $t;
SELECT id FROM $t WHERE _pos = 1;
SELECT count(DISTINCT _file) FROM $t WHERE _partition.p = 'a';
SELECT _partition.p, count(*) FROM $t GROUP BY _partition.p;

-- name: deleted rows by their metadata column
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 2;
SELECT id, _deleted FROM $t;
SELECT id, _pos FROM $t WHERE NOT _deleted;

-- name: names of metadata tables in another case
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
SELECT operation FROM $t.SNAPSHOTS;
SELECT Operation FROM $t.Snapshots;
DESCRIBE $t.snapshots;
-- differs: outcome | choice | columns of metadata tables have no comments; Java's say what is in them
DESCRIBE $t.files;
-- differs: outcome | choice | columns of metadata tables have no comments; Java's say what is in them
DESCRIBE $t.partitions;
DESCRIBE $t.refs;
DESCRIBE $t.history;
DESCRIBE $t.manifests;
-- differs: outcome | choice | columns of metadata tables have no comments; Java's say what is in them
DESCRIBE $t.entries;
-- differs: outcome | choice | columns of metadata tables have no comments; Java's say what is in them
DESCRIBE $t.position_deletes;
DESCRIBE $t.metadata_log_entries;
DESCRIBE $t.all_manifests;
INSERT INTO $t.snapshots VALUES (1);
DELETE FROM $t.files;

-- name: a table whose name is that of a metadata table
CREATE TABLE $db.files USING iceberg $props AS SELECT 1 AS id;
SELECT * FROM $db.files;
SELECT record_count FROM $db.files.files;
CREATE TABLE $db.snapshots USING iceberg $props AS SELECT 7 AS id;
SELECT operation FROM $db.snapshots.snapshots;

-- name: files of a branch
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
SELECT record_count FROM $t.files VERSION AS OF 'b';
SELECT count(*) FROM $t.files;
SELECT count(*) FROM $t.all_data_files;
SELECT snapshot_id, parent_id, is_current_ancestor FROM $t.history;

-- name: metrics modes
-- runs: v1 v2
CREATE TABLE $t (id INT, s STRING, n STRING, c STRING) USING iceberg $props('write.metadata.metrics.default'='truncate(3)', 'write.metadata.metrics.column.n'='none', 'write.metadata.metrics.column.c'='counts');
INSERT INTO $t VALUES (1, 'abcdef', 'x', 'y'), (2, 'abzzzz', NULL, NULL);
SELECT lower_bounds, upper_bounds, value_counts, null_value_counts FROM $t.files;
ALTER TABLE $t SET TBLPROPERTIES ('write.metadata.metrics.default'='full');
INSERT INTO $t VALUES (3, 'abcdefghijklmnopqrstuvwxyz', 'x', 'y');
SELECT lower_bounds, upper_bounds FROM $t.files WHERE record_count = 1;
ALTER TABLE $t SET TBLPROPERTIES ('write.metadata.metrics.default'='wrong');

-- name: bounds of long texts and bytes
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT repeat('a', 20) AS s, repeat('ü', 20) AS u, unhex(repeat('ff', 20)) AS b, unhex(repeat('01', 20)) AS c;
SELECT lower_bounds, upper_bounds FROM $t.files;
SELECT count(*) FROM $t WHERE s = repeat('a', 20);
SELECT count(*) FROM $t WHERE b > X'ff';

-- name: lineage columns of files
-- runs: v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT INTO $t VALUES (3);
SELECT first_row_id, record_count FROM $t.files ORDER BY first_row_id;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: partitions as rows change
-- runs: v2-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b') AS v(id, p);
SELECT partition.p, record_count, file_count FROM $t.partitions;
INSERT INTO $t VALUES (4, 'a');
DELETE FROM $t WHERE p = 'b';
SELECT partition.p, record_count, file_count, position_delete_record_count FROM $t.partitions;
SELECT sum(record_count) FROM $t.partitions WHERE partition.p = 'a';
SELECT count(*) FROM $t.partitions WHERE partition.p IN ('b', 'c');

-- name: partitions of a table without any
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT INTO $t VALUES (3);
SELECT record_count, file_count FROM $t.partitions;
SELECT max(last_updated_snapshot_id) = max(s.snapshot_id) OR true AS known FROM $t.partitions, $t.snapshots s;
DELETE FROM $t;
SELECT record_count FROM $t.partitions;

-- name: files by their content
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 1;
SELECT content, record_count FROM $t.files WHERE content = 1;
SELECT content, record_count FROM $t.files WHERE content <> 1;
SELECT content, record_count FROM $t.files WHERE content IN (0, 2);
SELECT content, added_data_files_count + added_delete_files_count AS n FROM $t.all_manifests WHERE NOT content = 1;
SELECT count(*) FROM $t.all_manifests WHERE content NOT IN (0, 5);
SELECT count(*) FROM $t.all_manifests WHERE content > 0;

-- name: entries over deletes and new specs
-- runs: v1
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
ALTER TABLE $t REPLACE PARTITION FIELD p WITH bucket(2, id);
INSERT INTO $t VALUES (3, 'c');
DELETE FROM $t WHERE p = 'a';
SELECT status, data_file.partition.p, data_file.record_count FROM $t.entries;
SELECT count(*) FROM $t.all_entries WHERE status = 2;
SELECT data_file.spec_id, count(*) FROM $t.all_entries GROUP BY data_file.spec_id;

-- name: joins of metadata tables
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE TAG g AS OF VERSION $s1;
SELECT r.name, s.operation, s.summary['total-records'] AS n FROM $t.refs r JOIN $t.snapshots s ON r.snapshot_id = s.snapshot_id;
SELECT h.is_current_ancestor, count(*) FROM $t.history h LEFT JOIN $t.refs r ON h.snapshot_id = r.snapshot_id GROUP BY h.is_current_ancestor;
SELECT m.added_data_files_count FROM $t.manifests m JOIN $t.snapshots s ON m.added_snapshot_id = s.snapshot_id WHERE s.parent_id IS NULL;

-- name: metadata tables in subqueries of changes
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT INTO $t VALUES (3);
DELETE FROM $t WHERE id <= (SELECT count(*) - 1 FROM $t.snapshots);
INSERT INTO $t SELECT CAST(sum(record_count) AS INT) FROM $t.data_files;
CREATE TABLE $db.u USING iceberg $props AS SELECT operation, summary['added-records'] AS n FROM $t.snapshots WHERE parent_id IS NULL;
SELECT operation, n FROM $db.u;

-- name: a column named partition
-- runs: v3
CREATE TABLE $t (id INT, partition STRING) USING iceberg PARTITIONED BY (partition) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SELECT partition.partition, record_count FROM $t.files;
SELECT partition, record_count FROM $t.partitions WHERE partition.partition = 'a';
SELECT partition, _partition.partition AS p FROM $t;

-- name: positions of deleted rows
-- runs: v2-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'a'), (4, 'b'), (5, 'b') AS v(id, p);
DELETE FROM $t WHERE id IN (1, 3);
DELETE FROM $t WHERE id = 4;
SELECT pos, partition.p FROM $t.position_deletes;
SELECT pos FROM $t.position_deletes WHERE partition.p = 'a' AND pos > 0;
SELECT count(*) FROM $t.position_deletes WHERE spec_id = 0;
SELECT count(*) FROM $t.position_deletes d JOIN $t.files f ON d.file_path = f.file_path;

-- name: positions over a new spec and columns
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
DELETE FROM $t WHERE id = 1;
ALTER TABLE $t ADD PARTITION FIELD p;
ALTER TABLE $t ADD COLUMN n INT;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'c', 1), (4, 'c', 2) AS v(id, p, n);
DELETE FROM $t WHERE n = 1;
SELECT pos, spec_id, partition.p FROM $t.position_deletes;
SELECT pos FROM $t.position_deletes WHERE partition.p = 'c';

-- name: metadata columns of many partitions
-- runs: v2
CREATE TABLE $t (a INT, b STRING, d DATE, l ARRAY<INT>, m MAP<STRING, INT>) USING iceberg PARTITIONED BY (a, truncate(1, b), months(d)) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'xy', DATE'2024-01-05', array(1), map('k', 1)), (2, NULL, NULL, NULL, NULL) AS v(a, b, d, l, m);
SELECT a, _partition, _spec_id, l, m FROM $t;
SELECT _partition.b_trunc, _partition.d_month, m['k'] FROM $t WHERE _partition.a = 1;
ALTER TABLE $t DROP PARTITION FIELD a;
INSERT INTO $t (a) VALUES (3);
SELECT _spec_id, _partition.a, count(*) FROM $t GROUP BY _spec_id, _partition.a;
