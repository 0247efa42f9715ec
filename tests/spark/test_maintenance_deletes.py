"""Delete files rewritten and converted as jobs of Spark."""

from pathlib import Path

from pyspark.sql import SparkSession

from icefloe.manifests import FileContent
from tests.maintenance.histories import check_same_rows, new_table, rows_of_snapshots, some_rows
from tests.maintenance.test_convert_equality_deletes import deletes_of
from tests.spark.reading import delete_equal


def test_deletes_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    for number in range(3):
        table.append(some_rows(table, 10 * number))
        table.delete(f"k = {10 * number}")
    delete_equal(table, {"k": [1, 11, 21], "name": ["", None, "a"]})
    table.upgrade_format_version(3)
    table.append(some_rows(table, 40))
    before = rows_of_snapshots(table)
    rewritten = table.maintenance.rewrite_position_delete_files(engine=spark)
    assert (rewritten.rewritten_delete_files_count, rewritten.added_delete_files_count) == (3, 3)
    check_same_rows(before, table)
    done = table.maintenance.convert_equality_deletes(engine=spark, max_file_group_input_files=2)
    assert done.converted_equality_delete_files_count == 1
    assert deletes_of(table, FileContent.EQUALITY_DELETES) == []
    check_same_rows(before, table)
