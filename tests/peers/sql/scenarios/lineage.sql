-- Row lineage: ids and sequence numbers of rows through changes, for v3.
-- runs: v3-cow v3-mor

-- name: updates and deletes keep ids
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
UPDATE $t SET s = 'x' WHERE id = 2;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
DELETE FROM $t WHERE id = 1;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
INSERT INTO $t VALUES (4, 'd');
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: merge with matched and new rows
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
MERGE INTO $t t USING (SELECT * FROM VALUES (2, 'x'), (9, 'n') AS s(id, s)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: merge with only new rows
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a') AS v(id, s);
MERGE INTO $t t USING (SELECT * FROM VALUES (1, 'x'), (9, 'n') AS s(id, s)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: merge that deletes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, s);
MERGE INTO $t t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET s = 'far';
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: partitions
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS v(id, p);
SELECT count(DISTINCT _row_id), min(_row_id), max(_row_id) FROM $t;
UPDATE $t SET p = 'c' WHERE id = 1;
SELECT count(DISTINCT _row_id), max(_last_updated_sequence_number) FROM $t;

-- name: an upgraded table
CREATE TABLE $t USING iceberg TBLPROPERTIES ('format-version'='2', 'write.update.mode'='copy-on-write') AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
ALTER TABLE $t SET TBLPROPERTIES ('format-version'='3');
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
INSERT INTO $t VALUES (3, 'c');
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
UPDATE $t SET s = 'x' WHERE id = 1;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: overwrite gives new ids
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT OVERWRITE $t SELECT /*+ COALESCE(1) */ id FROM $t;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: branches count on
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT 1 AS id;
ALTER TABLE $t CREATE BRANCH b;
INSERT INTO $t.branch_b VALUES (2);
INSERT INTO $t VALUES (3);
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
SELECT id, _row_id FROM $t VERSION AS OF 'b';

-- name: columns of lineage in conditions
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
INSERT INTO $t VALUES (3);
SELECT id FROM $t WHERE _row_id = 1;
SELECT id FROM $t WHERE _last_updated_sequence_number > 1;
-- differs: outcome | java | Java does not find the columns of lineage in the conditions of changes
DELETE FROM $t WHERE _row_id = 0;
-- differs: outcome | java | Java does not find the columns of lineage in the conditions of changes
UPDATE $t SET id = 100 WHERE _last_updated_sequence_number = 2;
SELECT id, _row_id FROM $t;

-- name: names of lineage as columns
-- runs: v2 v3
-- differs: rows | java | Java makes tables with columns named as metadata columns, and cannot read them
CREATE TABLE $t (id INT, _row_id INT) USING iceberg $props;
-- differs: u.rows | java | Java makes tables with columns named as metadata columns, and cannot read them
CREATE TABLE $db.u (id INT, _pos INT) USING iceberg $props;
-- differs v2: outcome | choice | columns of lineage can be asked for in every version, and are null where there is none
SELECT _row_id FROM $db.u;
-- differs: crossed, u.crossed | java | Java makes tables with columns named as metadata columns, and cannot read them

-- name: rows that move between partitions
-- runs: v3-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (p) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a') AS v(id, p);
UPDATE $t SET p = 'b' WHERE id = 1;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;
UPDATE $t SET p = 'a' WHERE id = 1;
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: an update that touches one of many
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT id, 0 AS n FROM range(0, 5, 1, 1);
UPDATE $t SET n = 1 WHERE id = 2;
DELETE FROM $t WHERE id = 0;
MERGE INTO $t t USING (SELECT 4L AS id UNION ALL SELECT 9L) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 2 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 3);
SELECT id, _row_id, _last_updated_sequence_number FROM $t;

-- name: lineage of old snapshots
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
UPDATE $t SET id = 20 WHERE id = 2;
SELECT id, _row_id, _last_updated_sequence_number FROM $t VERSION AS OF $s1;
SELECT a.id, b.id FROM $t VERSION AS OF $s1 a JOIN $t b ON a._row_id = b._row_id;
CALL lake.system.rollback_to_snapshot('$t', $s1);
INSERT INTO $t VALUES (3);
SELECT count(DISTINCT _row_id) FROM $t;
