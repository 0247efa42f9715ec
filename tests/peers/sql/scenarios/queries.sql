-- Queries of Spark's own grammar over tables: subqueries, windows, set operations, sampling, pivots.
-- runs: v2

-- name: order, limit and offset
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'c'), (1, NULL), (2, 'b') AS v(id, s);
SELECT * FROM $t ORDER BY id DESC LIMIT 2;
SELECT s FROM $t ORDER BY s NULLS LAST, id LIMIT 1 OFFSET 1;

-- name: where nulls stand
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1.5D), (2, NULL), (3, DOUBLE('NaN')), (4, DOUBLE('-Infinity')), (5, DOUBLE('Infinity')) AS v(id, d);
SELECT id FROM $t ORDER BY d;
SELECT id FROM $t ORDER BY d DESC;
SELECT id FROM $t ORDER BY d NULLS LAST, id;
SELECT id FROM $t ORDER BY d DESC NULLS FIRST LIMIT 3;

-- name: limits of nothing and of all
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT id FROM range(0, 10, 1, 1);
DELETE FROM $t WHERE id IN (0, 9);
SELECT * FROM $t LIMIT 0;
SELECT * FROM $t LIMIT ALL;
SELECT count(*) FROM (SELECT * FROM $t LIMIT 5);
SELECT count(*) FROM (SELECT * FROM $t WHERE id > 6 LIMIT 5);
SELECT * FROM $t ORDER BY id OFFSET 6;
SELECT * FROM $t LIMIT -1;

-- name: samples
CREATE TABLE $t USING iceberg $props AS SELECT id FROM range(0, 20, 1, 1);
SELECT count(*) FROM $t TABLESAMPLE (100 PERCENT);
SELECT count(*) FROM $t TABLESAMPLE (3 ROWS);
SELECT count(*) FROM $t TABLESAMPLE (0 PERCENT);
SELECT count(*) <= 20 FROM $t TABLESAMPLE (50 PERCENT) REPEATABLE (7);
SELECT count(*) FROM $t TABLESAMPLE (101 PERCENT);

-- name: windows by rank
-- runs: v2-mor
CREATE TABLE $t USING iceberg PARTITIONED BY (dep) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 10), (2, 'a', 30), (3, 'a', 30), (4, 'b', 5), (5, 'b', NULL) AS v(id, dep, pay);
SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER (PARTITION BY dep ORDER BY pay DESC, id) AS n FROM $t WINDOW w AS (PARTITION BY dep ORDER BY pay DESC);
DELETE FROM $t WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY dep ORDER BY pay DESC, id) AS n FROM $t) WHERE n > 1);
SELECT id, ntile(2) OVER (ORDER BY id) AS n FROM $t;

-- name: windows by frames
-- runs: v1
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (DATE'2024-01-01', 1), (DATE'2024-01-02', 2), (DATE'2024-01-04', 4), (DATE'2024-01-05', NULL) AS v(d, n);
SELECT d, sum(n) OVER (ORDER BY d) AS running FROM $t ORDER BY d;
SELECT d, avg(n) OVER (ORDER BY d ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM $t ORDER BY d;
SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW) AS s FROM $t ORDER BY d;
SELECT d, lag(n, 1, 0) OVER (ORDER BY d) AS before, lead(n) OVER (ORDER BY d) AS after FROM $t ORDER BY d;
SELECT d, first_value(n) OVER (ORDER BY d DESC) AS f, last_value(n) IGNORE NULLS OVER (ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM $t ORDER BY d;

-- name: the newest row of each key
-- runs: v3-mor
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, 'old'), (1, 2, 'new'), (2, 1, 'only') AS v(id, ver, s);
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY ver DESC) AS rn FROM $t) WHERE rn = 1 ORDER BY id;
SELECT id, max_by(s, ver) FROM $t GROUP BY id;
MERGE INTO $t t USING (SELECT id, max(ver) AS ver FROM $t GROUP BY id) s ON t.id = s.id AND t.ver < s.ver WHEN MATCHED THEN DELETE;

-- name: union, intersect and except
-- runs: v3
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2), (2), (NULL) AS v(id);
CREATE TABLE $db.u USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2), (3), (NULL) AS v(id);
SELECT id FROM $t UNION SELECT id FROM $db.u;
SELECT id FROM $t UNION ALL SELECT id FROM $db.u;
SELECT id FROM $t INTERSECT SELECT id FROM $db.u;
SELECT id FROM $t EXCEPT ALL SELECT id FROM $db.u;
SELECT id FROM $t INTERSECT ALL SELECT id FROM $t MINUS SELECT 1;

-- name: unions of other types
CREATE TABLE $t (i INT, s STRING) USING iceberg $props;
CREATE TABLE $db.u (i BIGINT, s INT) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
INSERT INTO $db.u VALUES (5000000000, 7);
SELECT i FROM $t UNION ALL SELECT i FROM $db.u;
SELECT i FROM $t UNION ALL SELECT 1.5;
SELECT i, s FROM $t UNION ALL SELECT i FROM $db.u;
SELECT i FROM $t UNION ALL SELECT array(i) FROM $db.u;

-- name: common table expressions
-- runs: v2
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10), (2, 20), (3, 30) AS v(id, n);
WITH big AS (SELECT * FROM $t WHERE n > 10), two AS (SELECT * FROM big WHERE id = 2) SELECT * FROM two UNION ALL SELECT * FROM big;
WITH t AS (SELECT 99 AS id) SELECT * FROM t;
WITH a(x, y) AS (SELECT * FROM $t) SELECT max(x), max(y) FROM a;
WITH a AS (SELECT 1 AS id), a AS (SELECT 2 AS id) SELECT * FROM a;
WITH a AS (WITH b AS (SELECT id FROM $t) SELECT id + 1 AS id FROM b) SELECT * FROM a WHERE id > 2;

-- name: a common table expression that calls itself
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL), (2, 1), (3, 2), (4, 2) AS v(id, parent);
WITH RECURSIVE r(id, depth) AS (SELECT 1, 0 UNION ALL SELECT id + 1, depth + 1 FROM r WHERE id < 4) SELECT * FROM r;
WITH RECURSIVE tree AS (SELECT id, 0 AS depth FROM $t WHERE parent IS NULL UNION ALL SELECT t.id, tree.depth + 1 FROM $t t JOIN tree ON t.parent = tree.id) SELECT id, depth FROM tree;

-- name: insert from a common table expression
-- runs: v1
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t WITH c AS (SELECT 1 AS id, 'a' AS s) SELECT * FROM c;
WITH c AS (SELECT 2 AS id, 'b' AS s) INSERT INTO $t SELECT * FROM c;
INSERT OVERWRITE $t WITH c AS (SELECT max(id) + 1 AS id FROM $t) SELECT id, 'max' FROM c;
CREATE TABLE $db.u USING iceberg $props AS WITH c AS (SELECT * FROM $t) SELECT id AS k FROM c;

-- name: correlated subqueries
-- runs: v2-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 5), (2, 'a', 9), (3, 'b', 1) AS v(id, g, n);
SELECT id FROM $t o WHERE n = (SELECT max(n) FROM $t i WHERE i.g = o.g);
SELECT id, (SELECT count(*) FROM $t i WHERE i.n > o.n) AS above FROM $t o;
SELECT id FROM $t o WHERE EXISTS (SELECT 1 FROM $t i WHERE i.g = o.g AND i.id <> o.id);
SELECT id FROM $t WHERE n > ALL (SELECT 1);
UPDATE $t AS o SET n = (SELECT sum(i.n) FROM $t i WHERE i.g = o.g) WHERE o.g = 'a';

-- name: scalar subqueries that give too much
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
SELECT (SELECT id FROM $t) AS x;
SELECT (SELECT id FROM $t WHERE id = 5) AS x;
SELECT (SELECT max(id) FROM $t) + (SELECT min(id) FROM $t) AS x;
DELETE FROM $t WHERE id = (SELECT id FROM $t);

-- name: groups by sets
-- runs: v1
CREATE TABLE $t USING iceberg PARTITIONED BY (a) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('x', 'p', 1), ('x', 'q', 2), ('y', 'p', 4), (NULL, 'p', 8) AS v(a, b, n);
SELECT a, b, sum(n) FROM $t GROUP BY ROLLUP (a, b);
SELECT a, b, sum(n), grouping_id() AS g FROM $t GROUP BY CUBE (a, b);
SELECT a, sum(n) FROM $t GROUP BY GROUPING SETS ((a), ());
SELECT a, count(*) FILTER (WHERE n > 1) AS c FROM $t GROUP BY ALL;

-- name: groups with having and order
-- runs: v2-mor
CREATE TABLE $t USING iceberg $props AS SELECT id % 3 AS g, id AS n FROM range(0, 10, 1, 1);
DELETE FROM $t WHERE n = 4;
SELECT g, count(*) AS c, sum(n) AS s FROM $t GROUP BY g HAVING count(*) > 2 ORDER BY s;
SELECT g, collect_list(n) FROM (SELECT * FROM $t WHERE n < 5 DISTRIBUTE BY g SORT BY n) GROUP BY g;
SELECT DISTINCT g FROM $t ORDER BY g DESC;
SELECT g + 1, max(n) FROM $t GROUP BY 1 ORDER BY 1;
SELECT g, n FROM $t GROUP BY g;

-- name: pivot and unpivot
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (2023, 'q1', 10), (2023, 'q2', 20), (2024, 'q1', 30) AS v(y, q, n);
SELECT * FROM $t PIVOT (sum(n) FOR q IN ('q1', 'q2'));
CREATE TABLE $db.u USING iceberg $props AS SELECT * FROM $t PIVOT (sum(n) AS s FOR q IN ('q1' AS one, 'q2' AS two));
SELECT * FROM $db.u UNPIVOT (n FOR q IN (one, two));
SELECT * FROM $db.u UNPIVOT INCLUDE NULLS (n FOR q IN (one AS `1`, two AS `2`));

-- name: generators
-- runs: v2
CREATE TABLE $t (id INT, l ARRAY<STRING>, m MAP<STRING, INT>, c ARRAY<STRUCT<x:INT, y:STRING>>) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, array('a', 'b'), map('k', 1, 'j', 2), array(named_struct('x', 1, 'y', 's'))), (2, array(), map(), NULL), (3, NULL, NULL, array()) AS v(id, l, m, c);
SELECT id, e FROM $t LATERAL VIEW explode(l) x AS e;
SELECT id, p, e FROM $t LATERAL VIEW OUTER posexplode(l) x AS p, e;
SELECT id, k, v FROM $t LATERAL VIEW explode(m) x AS k, v;
SELECT id, x, y FROM $t LATERAL VIEW inline(c) z;
SELECT id, stack(2, 'a', 1, 'b', 2) FROM $t WHERE id = 1;

-- name: parts of stars
-- runs: v3
CREATE TABLE $t (id INT, a STRING, s STRUCT<x:INT, y:INT>) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a', named_struct('x', 1, 'y', 2));
SELECT * EXCEPT (a) FROM $t;
SELECT s.* FROM $t;
SELECT t.*, id AS again FROM $t t;
SELECT * EXCEPT (none) FROM $t;
SELECT struct(*) FROM $t;

-- name: aliases of the same select
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 2), (3, 4) AS v(a, b);
SELECT a + b AS c, c * 2 AS d FROM $t;
SELECT a AS b, b AS a FROM $t ORDER BY a;
SELECT a AS x FROM $t WHERE x = 1;
SELECT a % 2 AS k, sum(b) FROM $t GROUP BY k;

-- name: conditions by case
-- runs: v2
CREATE TABLE $t USING iceberg PARTITIONED BY (g) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(id, g);
SELECT id FROM $t WHERE CASE WHEN g = 'a' THEN true WHEN g IS NULL THEN NULL ELSE false END;
SELECT id, CASE g WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS c FROM $t;
SELECT id FROM $t WHERE if(g = 'b', id > 1, id > 2);
SELECT id FROM $t WHERE coalesce(g, 'b') = 'b';
SELECT id FROM $t WHERE nullif(g, 'a') IS NULL;

-- name: patterns
-- runs: v3
CREATE TABLE $t USING iceberg PARTITIONED BY (truncate(2, s)) $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES ('abc'), ('abd'), ('a%c'), ('ABC'), (''), (NULL) AS v(s);
SELECT s FROM $t WHERE s LIKE 'ab%';
SELECT s FROM $t WHERE s LIKE 'a\\%c';
SELECT s FROM $t WHERE s LIKE '_b_';
SELECT s FROM $t WHERE s ILIKE 'abc';
SELECT s FROM $t WHERE s RLIKE '^a.[cd]$';
SELECT s FROM $t WHERE s NOT LIKE '%c';
SELECT s FROM $t WHERE s LIKE ANY ('%d', 'A%') OR startswith(s, 'a%');

-- name: pipes
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS v(id, g);
FROM $t |> WHERE id > 1 |> SELECT id, g;
FROM $t |> AGGREGATE count(*) AS n GROUP BY g;
FROM $t |> EXTEND id * 10 AS ten |> DROP g |> ORDER BY ten DESC |> LIMIT 2;
TABLE $t |> SET g = upper(g);

-- name: from first
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2) AS v(id);
FROM $t SELECT id WHERE id = 2;
TABLE $t;
SELECT * FROM $t TABLESAMPLE (100 PERCENT) AS x WHERE x.id = 1;
VALUES (1, 2);
SELECT * FROM (TABLE $t) AS y ORDER BY id;

-- name: many columns
-- runs: v1
CREATE TABLE $t (c01 INT, c02 INT, c03 INT, c04 INT, c05 INT, c06 INT, c07 INT, c08 INT, c09 INT, c10 INT, c11 STRING, c12 STRING, c13 STRING, c14 STRING, c15 STRING, c16 DATE, c17 DATE, c18 DATE, c19 DOUBLE, c20 DOUBLE, c21 BOOLEAN, c22 BOOLEAN, c23 BIGINT, c24 BIGINT, c25 BIGINT) USING iceberg PARTITIONED BY (c11, bucket(2, c25)) $props;
INSERT INTO $t (c25, c11, c01) VALUES (1, 'p', 7);
INSERT INTO $t (c24, c25, c22) VALUES (5, 2, true);
SELECT c25, c01, c22 FROM $t ORDER BY c25;
UPDATE $t SET c20 = c25 / 2, c18 = DATE'2024-02-29' WHERE c24 IS NULL;
ALTER TABLE $t DROP COLUMNS (c02, c03, c04, c05, c06, c07, c08, c09, c10);
SELECT * FROM $t WHERE c18 IS NOT NULL;

-- name: long names
-- runs: v2
CREATE TABLE $db.a_table_whose_name_is_rather_long_but_still_shorter_than_what_file_systems_allow (a_column_whose_name_is_rather_long_and_goes_on_and_on_for_more_than_sixty_four_letters INT, another_column_whose_name_is_rather_long_and_goes_on_and_on_for_more_than_sixty_four STRING) USING iceberg PARTITIONED BY (another_column_whose_name_is_rather_long_and_goes_on_and_on_for_more_than_sixty_four) $props;
INSERT INTO $db.a_table_whose_name_is_rather_long_but_still_shorter_than_what_file_systems_allow VALUES (1, 'x'), (2, 'y');
SELECT sum(a_column_whose_name_is_rather_long_and_goes_on_and_on_for_more_than_sixty_four_letters) AS s FROM $db.a_table_whose_name_is_rather_long_but_still_shorter_than_what_file_systems_allow;
DELETE FROM $db.a_table_whose_name_is_rather_long_but_still_shorter_than_what_file_systems_allow WHERE another_column_whose_name_is_rather_long_and_goes_on_and_on_for_more_than_sixty_four = 'x';

-- name: long texts
-- runs: v3
CREATE TABLE $t (id INT, s STRING, b BINARY) USING iceberg PARTITIONED BY (truncate(8, s)) $props;
INSERT INTO $t SELECT id, repeat(chr(97 + id), 5000), CAST(repeat('z', 300) AS BINARY) FROM range(0, 3, 1, 1);
SELECT id, length(s), length(b) FROM $t WHERE s > repeat('b', 10);
SELECT id FROM $t WHERE s = repeat('b', 5000);
SELECT min(length(s)), max(s) = repeat('c', 5000) FROM $t;

-- name: sums that overflow
CREATE TABLE $t (l BIGINT, d DECIMAL(38, 0), i INT) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (9223372036854775807L, 99999999999999999999999999999999999999BD, 2147483647), (1L, 1BD, 1) AS v(l, d, i);
SELECT sum(l) FROM $t;
SELECT sum(i) FROM $t;
SELECT sum(d) FROM $t;
SELECT i + 1 FROM $t WHERE i > 1;
SELECT try_sum(l), try_sum(d) FROM $t;
SELECT try_add(i, 1) FROM $t;

-- name: sums that overflow, ANSI off
-- set: spark.sql.ansi.enabled=false
CREATE TABLE $t (l BIGINT, d DECIMAL(38, 0), i INT, s STRING) USING iceberg $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (9223372036854775807L, 99999999999999999999999999999999999999BD, 2147483647, '12'), (1L, 1BD, 1, 'x') AS v(l, d, i, s);
SELECT sum(l), sum(d), sum(i) FROM $t;
SELECT i + 1, i / 0, CAST(s AS INT) FROM $t;
SELECT s FROM $t WHERE s = 12;
UPDATE $t SET i = i + 1, s = CAST(CAST(s AS INT) AS STRING);
SELECT * FROM $t WHERE s IS NULL;

-- name: a query that fails in the middle of a write
-- runs: v1-cow
CREATE TABLE $t (id INT, n INT) USING iceberg PARTITIONED BY (id) $props;
INSERT INTO $t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1), (2, 0) AS v(id, n);
INSERT INTO $t SELECT id, 10 / n FROM $t;
INSERT OVERWRITE $t SELECT id, CAST(1 / n AS INT) FROM $t;
UPDATE $t SET n = 10 / n;
DELETE FROM $t WHERE 10 / n = 10;
INSERT INTO $t SELECT 3, assert_true(false);
SELECT * FROM $t;

-- name: errors raised by a query
CREATE TABLE $t (id INT, s STRING) USING iceberg $props;
INSERT INTO $t VALUES (1, 'a');
INSERT INTO $t SELECT 2, raise_error('no');
SELECT raise_error(s) FROM $t;
MERGE INTO $t t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = raise_error('no');
MERGE INTO $t t USING (SELECT 5 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = raise_error('no');

-- name: tables read again and again in one query
-- runs: v3-cow
CREATE TABLE $t USING iceberg $props AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b') AS v(id, s);
INSERT INTO $t SELECT id + 10, s FROM $t UNION ALL SELECT id + 20, s FROM $t WHERE id = 1;
INSERT OVERWRITE $t SELECT id, s FROM $t WHERE id > 10;
SELECT (SELECT count(*) FROM $t), (SELECT max(id) FROM $t), count(*) FROM $t WHERE id IN (SELECT id FROM $t WHERE s = 'a');
CREATE OR REPLACE TABLE $t USING iceberg $props AS SELECT s, count(*) AS n FROM $t GROUP BY s;
