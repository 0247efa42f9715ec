"""Rows that appends added between two snapshots, as a frame: `start-snapshot-id` and `end-snapshot-id` of Iceberg's reads."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from icefloe.errors import InvalidInputError
from icefloe.manifests import ManifestColumns
from icefloe.planning import FileScanTask, IncrementalAppendScan, TableScan
from icefloe.spark.arrow_engine import arrow_frame
from icefloe.spark.engine import clean_native_scan
from icefloe.spark.scan_plan import OF_DATA
from icefloe.spark.types import mapping_of
from icefloe.table import Table

START, END = "start-snapshot-id", "end-snapshot-id"


@dataclass(frozen=True)
class _Appended:
    """Plans the files that appends added after a snapshot and up to another."""

    first: int
    last: int | None

    def plan_files(self, scan: TableScan) -> Generator[FileScanTask, None, None]:
        """The files that may hold a row which the scan wants."""
        yield from self._scan_of(scan).plan_files()

    def entries(self, scan: TableScan) -> Iterator[ManifestColumns]:
        """The entries of all the files, manifest by manifest."""
        request = self._scan_of(scan).request()
        if request is None:
            return
        for manifest in request.manifests():
            columns = request.source.read(manifest, OF_DATA)
            yield columns.filter(request.entries(columns))

    def _scan_of(self, scan: TableScan) -> IncrementalAppendScan:
        return IncrementalAppendScan(
            scan.metadata,
            scan.storage,
            self.first,
            self.last,
            scan.row_filter,
            case_sensitive=scan.case_sensitive,
            options=scan.options,
            cache=scan.cache,
            reporter=scan.reporter,
            table_name=scan.table_name,
        )


def appended_rows(spark: SparkSession, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows that the options choose, lazily."""
    first, last = (_number(options, key) for key in (START, END))
    if first is None:
        raise InvalidInputError(f"option {END!r} needs {START!r}, the snapshot after which rows were appended")
    planner, scan = _Appended(first, last), table.scan()
    name = f"{'.'.join(table.name())} {first}..{last}"
    native = clean_native_scan(spark, scan, planner, planner.entries(scan), name)
    return arrow_frame(spark, replace(scan, planner=planner), mapping_of(spark)) if native is None else native.frame()


def _number(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    if text is not None and not text.isdigit():
        raise InvalidInputError(f"option {key!r} is {text!r}; it must be the id of a snapshot")
    return None if text is None else int(text)
