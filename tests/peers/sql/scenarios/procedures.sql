-- CALL: rollback, set current, cherry-pick, expire, rewrite files and manifests, statistics, ancestors, tags by procedures.
-- runs: v2

-- name: rollback to a snapshot
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
CALL lake.system.rollback_to_snapshot(snapshot_id => $s2, table => '$t');
CALL lake.system.rollback_to_snapshot('$t', 123);
CALL lake.system.rollback_to_snapshot('$t');
CALL lake.system.rollback_to_snapshot(table => '$t', none => 1);
CALL lake.system.rollback_to_snapshot('', $s1);
CALL lake.system.rollback_to_snapshot('$db.none', $s1);

-- name: rollback to a time
-- runs: v1 v2
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_timestamp('$t', TIMESTAMP'$at1');
CALL lake.system.rollback_to_timestamp(table => '$t', timestamp => TIMESTAMP'2000-01-01 00:00:00');
SELECT * FROM $t;

-- name: set the current snapshot
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
ALTER TABLE $t CREATE TAG g AS OF VERSION $s1;
CALL lake.system.set_current_snapshot('$t', $s1);
CALL lake.system.set_current_snapshot(table => '$t', snapshot_id => $s2);
CALL lake.system.set_current_snapshot(table => '$t', ref => 'g');
CALL lake.system.set_current_snapshot(table => '$t', ref => 'none');
CALL lake.system.set_current_snapshot(table => '$t', snapshot_id => $s1, ref => 'g');
CALL lake.system.set_current_snapshot(table => '$t');

-- name: cherry-pick
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_snapshot('$t', $s1);
CALL lake.system.cherrypick_snapshot('$t', $s2);
SELECT * FROM $t;
CALL lake.system.cherrypick_snapshot('$t', $s2);
CALL lake.system.cherrypick_snapshot('$t', 123);

-- name: cherry-pick an append onto another
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
CALL lake.system.cherrypick_snapshot('$t', $s2);
SELECT * FROM $t;
CALL lake.system.cherrypick_snapshot('$t', $s2);

-- name: cherry-pick a delete
-- runs: v2-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
DELETE FROM $t WHERE id = 1;
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
CALL lake.system.cherrypick_snapshot('$t', $s2);

-- name: ancestors
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.ancestors_of('$t');
CALL lake.system.ancestors_of('$t', $s2);
CALL lake.system.rollback_to_snapshot('$t', $s1);
CALL lake.system.ancestors_of(table => '$t', snapshot_id => $s3);
CALL lake.system.ancestors_of('$t', 1);

-- name: expire snapshots
-- runs: v1 v2 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
DELETE FROM $t WHERE id = 1;
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');
SELECT * FROM $t;

-- name: expire and keep some
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00', retain_last => 2);
CALL lake.system.expire_snapshots('$t', TIMESTAMP'2000-01-01 00:00:00');
CALL lake.system.expire_snapshots(table => '$t');

-- name: expire by id
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT OVERWRITE $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.expire_snapshots(table => '$t', snapshot_ids => array($s1));
CALL lake.system.expire_snapshots(table => '$t', snapshot_ids => array($s3));
CALL lake.system.expire_snapshots(table => '$t', snapshot_ids => array(12345L));

-- name: expire with branches and tags
-- runs: v1 v3
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE TAG g;
INSERT OVERWRITE $t VALUES (2);
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (3);
INSERT OVERWRITE $t VALUES (4);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');
SELECT * FROM $t VERSION AS OF 'g';
SELECT * FROM $t VERSION AS OF 'b';
ALTER TABLE $t DROP TAG g;
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00', stream_results => true);

-- name: expire where it is not allowed
CREATE TABLE $t USING iceberg $props('gc.enabled'='false') AS SELECT 1 AS id;
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');
CALL lake.system.expire_snapshots(table => '$t', retain_last => 0);
CALL lake.system.expire_snapshots();

-- name: expire delete files
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 1;
INSERT OVERWRITE $t VALUES (9);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');

-- name: expire old schemas and specs
-- runs: v2
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t VALUES (1, 'a');
ALTER TABLE $t DROP PARTITION FIELD p;
ALTER TABLE $t ADD COLUMN n INT;
INSERT OVERWRITE $t VALUES (2, 'b', 3);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00', clean_expired_metadata => true);
SELECT * FROM $t;

-- name: rewrite data files
-- runs: v1 v2 v3
CREATE TABLE $t (id INT) USING iceberg $props;
INSERT INTO $t VALUES (1);
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.rewrite_data_files(table => '$t', options => map('min-input-files', '2'));
SELECT * FROM $t;

-- name: rewrite in partitions, by a condition
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'a'), (4, 'b') AS v(id, p);
CALL lake.system.rewrite_data_files(table => '$t', where => 'p = "a"', options => map('min-input-files', '2'));
CALL lake.system.rewrite_data_files(table => '$t', where => 'p = "none"', options => map('min-input-files', '2'));
CALL lake.system.rewrite_data_files(table => '$t', where => 'none = 1');

-- name: rewrite with deletes
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 2;
CALL lake.system.rewrite_data_files(table => '$t', options => map('delete-file-threshold', '1', 'rewrite-all', 'true'));
SELECT * FROM $t;

-- name: rewrite sorted
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t VALUES (3, 'c');
INSERT INTO $t VALUES (1, 'a');
CALL lake.system.rewrite_data_files(table => '$t', strategy => 'sort', sort_order => 'id DESC NULLS LAST', options => map('rewrite-all', 'true'));
SELECT id, _pos FROM $t;
CALL lake.system.rewrite_data_files(table => '$t', strategy => 'sort', sort_order => 'zorder(id, s)', options => map('rewrite-all', 'true'));
CALL lake.system.rewrite_data_files(table => '$t', strategy => 'none');
CALL lake.system.rewrite_data_files(table => '$t', strategy => 'sort', sort_order => 'none ASC');
CALL lake.system.rewrite_data_files(table => '$t', strategy => 'binpack', sort_order => 'id');
CALL lake.system.rewrite_data_files(table => '$t', options => map('none', 'x'));

-- name: rewrite nothing
-- runs: v1 v2
CREATE TABLE $t (id INT) USING iceberg $props;
CALL lake.system.rewrite_data_files('$t');
INSERT INTO $t VALUES (1);
CALL lake.system.rewrite_data_files('$t');

-- name: rewrite keeps lineage
-- runs: v3-cow v3-mor
CREATE TABLE $t (id INT) USING iceberg $props;
INSERT INTO $t VALUES (1);
INSERT INTO $t VALUES (2);
UPDATE $t SET id = 20 WHERE id = 2;
CALL lake.system.rewrite_data_files(table => '$t', options => map('rewrite-all', 'true'));
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: rewrite on a branch
CREATE TABLE $t (id INT) USING iceberg $props;
INSERT INTO $t VALUES (1);
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
CALL lake.system.rewrite_data_files(table => '$t', branch => 'b', options => map('rewrite-all', 'true'));
SELECT * FROM $t.branch_b;

-- name: rewrite into the newest spec
-- runs: v1 v2
CREATE TABLE $t (id INT, p STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
ALTER TABLE $t ADD PARTITION FIELD p;
CALL lake.system.rewrite_data_files(table => '$t', options => map('rewrite-all', 'true'));
SELECT partition, spec_id, record_count FROM $t.files;

-- name: rewrite manifests
-- runs: v1 v2 v3
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t VALUES (1, 'a');
INSERT INTO $t VALUES (2, 'b');
CALL lake.system.rewrite_manifests('$t');
SELECT added_data_files_count, existing_data_files_count FROM $t.manifests;
CALL lake.system.rewrite_manifests(table => '$t', use_caching => false);
CALL lake.system.rewrite_manifests(table => '$t', spec_id => 5);
SELECT * FROM $t WHERE p = 'a';

-- name: rewrite manifests of an empty table
CREATE TABLE $t (id INT) USING iceberg $props;
CALL lake.system.rewrite_manifests('$t');

-- name: rewrite position deletes
-- runs: v2-mor v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3), (4) AS v(id);
DELETE FROM $t WHERE id = 1;
DELETE FROM $t WHERE id = 3;
CALL lake.system.rewrite_position_delete_files(table => '$t', options => map('rewrite-all', 'true'));
SELECT * FROM $t;

-- name: statistics
-- runs: v2 v3
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (2, 'b') AS v(id, p);
CALL lake.system.compute_table_stats(table => '$t', columns => array('id'));
CALL lake.system.compute_table_stats(table => '$t', columns => array('none'));
CALL lake.system.compute_partition_stats('$t');
INSERT INTO $t VALUES (3, 'c');
CALL lake.system.compute_partition_stats(table => '$t', snapshot_id => $s1);
CALL lake.system.compute_table_stats(table => '$t', snapshot_id => 123);

-- name: orphan files
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CALL lake.system.remove_orphan_files(table => '$t', dry_run => true);
CALL lake.system.remove_orphan_files(table => '$t', older_than => TIMESTAMP'2000-01-01 00:00:00');
CALL lake.system.remove_orphan_files(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00');

-- name: procedures that do not exist
CALL lake.system.none('$t');
CALL lake.none.expire_snapshots('$t');
CALL none.system.expire_snapshots('$t');

-- name: comments inside a call
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
/* a comment */ CALL /* another */ lake.system.rollback_to_snapshot('$t', $s1) -- the end
;
SELECT * FROM $t;

-- name: names of tables in calls
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.ancestors_of(table => '`lake`.$t');
CALL LAKE.SYSTEM.ANCESTORS_OF(TABLE => '$t');
CALL lake.system.ancestors_of('$db.t');
