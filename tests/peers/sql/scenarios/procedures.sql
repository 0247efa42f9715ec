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

-- name: procedures that are not offered
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
-- differs: outcome | choice | docs/sql.md: this procedure is not offered in SQL
CALL lake.system.rewrite_data_files('$t');
-- differs: outcome | choice | docs/sql.md: this procedure is not offered in SQL
CALL lake.system.rewrite_position_delete_files('$t');
-- differs: outcome | choice | docs/sql.md: this procedure is not offered in SQL
CALL lake.system.remove_orphan_files(table => '$t', dry_run => true);
-- differs: outcome | choice | docs/sql.md: this procedure is not offered in SQL
CALL lake.system.compute_table_stats('$t');
CALL lake.system.compute_partition_stats('$t');
-- differs: outcome | choice | docs/sql.md: this procedure is not offered in SQL
CALL lake.system.create_changelog_view(table => '$t', changelog_view => 'cl_not_offered');
DROP VIEW IF EXISTS cl_not_offered;

-- name: fast forward of branches that are not main
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH a;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
CALL lake.system.fast_forward(table => '$t', branch => 'a', to => 'b');
CALL lake.system.fast_forward('$t', 'new', 'b');
CALL lake.system.fast_forward('$t', 'a', 'none');
CALL lake.system.fast_forward('$t', 'a');
SELECT * FROM $t.branch_a;

-- name: cherry-pick onto what was overwritten
CREATE TABLE $t USING iceberg $props('write.wap.enabled'='true') AS SELECT 1 AS id;
SET spark.wap.id=one;
INSERT INTO $t VALUES (2);
RESET spark.wap.id;
INSERT OVERWRITE $t VALUES (9);
CALL lake.system.cherrypick_snapshot('$t', $s2);
SELECT * FROM $t;

-- name: rollback and go on
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (3) AS v(id);
DELETE FROM $t WHERE id = 2;
CALL lake.system.rollback_to_snapshot('$t', $s1);
DELETE FROM $t WHERE id = 3;
SELECT * FROM $t;
SELECT snapshot_id, parent_id, is_current_ancestor FROM $t.history ORDER BY made_current_at;
CALL lake.system.ancestors_of('$t');

-- name: set the current snapshot to another line
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
CALL lake.system.set_current_snapshot('$t', $s2);
SELECT * FROM $t;
INSERT INTO $t VALUES (4);
SELECT snapshot_id, is_current_ancestor FROM $t.history ORDER BY made_current_at;

-- name: procedures after USE
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
USE $db;
CALL system.rollback_to_snapshot('t', $s1);
CALL lake.system.ancestors_of('t');
CALL lake.system.set_current_snapshot('$ns.t', $s2);
SELECT * FROM t;

-- name: arguments of other types
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rollback_to_snapshot('$t', '$s1');
CALL lake.system.rollback_to_snapshot('$t', 1.5D);
CALL lake.system.rollback_to_timestamp('$t', '$at1');
CALL lake.system.rollback_to_snapshot('$t', NULL);
CALL lake.system.rollback_to_snapshot(table => '$t', table => '$t', snapshot_id => $s1);
CALL lake.system.rollback_to_snapshot(table => '$t', $s1);

-- name: expire what a rollback left
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.rollback_to_snapshot('$t', $s1);
CALL lake.system.expire_snapshots(table => '$t', older_than => TIMESTAMP'2999-01-01 00:00:00', retain_last => 5);
SELECT count(*) FROM $t.snapshots;
SELECT * FROM $t;

-- name: properties that say what expires
CREATE TABLE $t USING iceberg $props('history.expire.max-snapshot-age-ms'='1', 'history.expire.min-snapshots-to-keep'='2') AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
INSERT INTO $t VALUES (3);
CALL lake.system.expire_snapshots('$t');
SELECT count(*) FROM $t.snapshots;
ALTER TABLE $t SET TBLPROPERTIES ('history.expire.min-snapshots-to-keep'='1');
CALL lake.system.expire_snapshots(table => '$t', max_concurrent_deletes => 2);

-- name: rewrite manifests with deletes and specs
-- runs: v2-mor
CREATE TABLE $t (id INT, p STRING) USING iceberg PARTITIONED BY (p) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a') AS v(id, p);
DELETE FROM $t WHERE id = 1;
ALTER TABLE $t ADD PARTITION FIELD bucket(2, id);
INSERT INTO $t VALUES (3, 'b');
INSERT INTO $t VALUES (4, 'c');
CALL lake.system.rewrite_manifests('$t');
SELECT * FROM $t;
