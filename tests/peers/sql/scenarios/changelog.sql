-- What changed between snapshots: create_changelog_view, and the table of changes.
-- runs: v2-cow

-- name: appends and deletes
-- runs: v1-cow v2-cow v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
INSERT INTO $t VALUES (3, 'c');
DELETE FROM $t WHERE id = 1;
CALL lake.system.create_changelog_view(table => '$t', changelog_view => 'cl_all');
SELECT id, s, _change_type, _change_ordinal, _commit_snapshot_id FROM cl_all;
DROP VIEW cl_all;
SELECT id, s, _change_type, _change_ordinal FROM $t.changes;

-- name: between two snapshots
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
INSERT INTO $t VALUES (3, 'c');
INSERT INTO $t VALUES (4, 'd');
CALL lake.system.create_changelog_view(table => '$t', options => map('start-snapshot-id', '$s1', 'end-snapshot-id', '$s2'), changelog_view => 'cl_range');
SELECT id, _change_type, _change_ordinal FROM cl_range;
DROP VIEW cl_range;
CALL lake.system.create_changelog_view(table => '$t', options => map('start-snapshot-id', '$s2'), changelog_view => 'cl_from');
SELECT id, _change_type, _change_ordinal FROM cl_from;
DROP VIEW cl_from;

-- name: updates are pairs
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id = 1;
CALL lake.system.create_changelog_view(table => '$t', identifier_columns => array('id'), changelog_view => 'cl_pairs');
SELECT id, s, _change_type, _change_ordinal FROM cl_pairs;
DROP VIEW cl_pairs;
CALL lake.system.create_changelog_view(table => '$t', compute_updates => false, changelog_view => 'cl_rows');
SELECT id, s, _change_type, _change_ordinal FROM cl_rows;
DROP VIEW cl_rows;

-- name: net changes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id = 1;
UPDATE $t SET s = 'a' WHERE id = 1;
DELETE FROM $t WHERE id = 2;
CALL lake.system.create_changelog_view(table => '$t', net_changes => true, changelog_view => 'cl_net');
SELECT id, s, _change_type FROM cl_net;
DROP VIEW cl_net;

-- name: identifier fields of the table
CREATE TABLE $t (id INT NOT NULL, s STRING) USING iceberg $props;
ALTER TABLE $t SET IDENTIFIER FIELDS id;
INSERT INTO $t VALUES (1, 'a');
UPDATE $t SET s = 'x' WHERE id = 1;
CALL lake.system.create_changelog_view(table => '$t', compute_updates => true, changelog_view => 'cl_ids');
SELECT id, s, _change_type, _change_ordinal FROM cl_ids;
DROP VIEW cl_ids;

-- name: overwrites
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, p);
SET spark.sql.sources.partitionOverwriteMode=dynamic;
INSERT OVERWRITE $t VALUES (3, 'a');
CALL lake.system.create_changelog_view(table => '$t', changelog_view => 'cl_over');
SELECT id, p, _change_type, _change_ordinal FROM cl_over;
SELECT id FROM cl_over WHERE p = 'a' AND _change_type = 'DELETE';
DROP VIEW cl_over;

-- name: rewrites are no changes
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
INSERT INTO $t VALUES (2);
CALL lake.system.rewrite_manifests('$t');
CALL lake.system.rewrite_data_files(table => '$t', options => map('rewrite-all', 'true'));
INSERT INTO $t VALUES (3);
CALL lake.system.create_changelog_view(table => '$t', changelog_view => 'cl_rewrite');
SELECT id, _change_type, _change_ordinal FROM cl_rewrite;
DROP VIEW cl_rewrite;

-- name: what cannot be asked
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
CALL lake.system.create_changelog_view(table => '$t', options => map('start-snapshot-id', '123'), changelog_view => 'cl_wrong');
CALL lake.system.create_changelog_view(table => '$t', identifier_columns => array('none'), changelog_view => 'cl_wrong2');
CALL lake.system.create_changelog_view(table => '$t', compute_updates => true, changelog_view => 'cl_wrong3');
CALL lake.system.create_changelog_view(table => '$t', net_changes => true, compute_updates => true, identifier_columns => array('id'), changelog_view => 'cl_wrong4');
