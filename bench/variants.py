"""Shredded variants: put together in columns against row by row, filters that skip files and scans of one field against the same
rows unshredded, and Spark's scans of our tables against `spark.read.parquet` of the same files.

Every answer is compared before its time is printed.
"""

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import icefloe
from bench.report import Row, interleave
from icefloe.formats.variant.inference import infer_form
from icefloe.formats.variant.shredding import unshred
from icefloe.formats.variant.splitting import shred
from icefloe.schema import VARIANT_STORAGE
from icefloe.variant import Variant, VariantKind, VariantPrimitive, encode, encode_column, encode_objects
from icefloe.variant.reading import read_dictionary
from icefloe.variant.writing import encode_dictionary, encode_object, encode_primitive

ROWS = {"small": 5_000, "medium": 200_000, "full": 1_000_000}
ROWS_IN_FILE = {"small": 50, "medium": 20_000, "full": 100_000}
REPEAT = {"small": 1, "medium": 3, "full": 3}
FILES, MATCHING = 100, 3
FIELDS = 20
SHREDDED, PLAIN = "bench.shredded", "bench.plain"


def run(size: str) -> Iterator[Row]:
    """All cases."""
    yield from _put_together(size)
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-"))
    try:
        with icefloe.connect(warehouse=home, config={"spark.driver.memory": "4g"}) as ice:
            yield from _Bench(ice, size).rows()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _variants(values: list[Any]) -> Any:
    encoded = [encode(value) for value in values]
    parts = [pa.array([each.metadata for each in encoded]), pa.array([each.value for each in encoded])]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE))


def _shredded(values: list[Any]) -> Any:
    column = _variants(values)
    return shred(column, infer_form(Variant(**row) for row in column.slice(0, 100).to_pylist()))


def _put_together(size: str) -> Iterator[Row]:
    count = ROWS[size]
    for case, values, by_row in (
        ("integers", list(range(count)), _join_primitives),
        ("objects", [{"city": f"c{i % 10}", "id": i, "name": f"name {i}"} for i in range(count)], _join_objects),
    ):
        column = _shredded(values)
        assert unshred(column, "bench").field("value").to_pylist() == by_row(column)
        ours, theirs = interleave(lambda: unshred(column, "bench"), lambda: by_row(column), REPEAT[size])  # noqa: B023  # run now
        yield Row(f"{case}-against-row-by-row", ours, theirs, 1 / 20, f"{count / ours / 1e6:.1f} million rows a second")


def _join_primitives(column: Any) -> list[bytes]:
    return [encode_primitive(_typed(value)) for value in column.field("typed_value").to_pylist()]


def _join_objects(column: Any) -> list[bytes]:
    ids = [read_dictionary(metadata).ids for metadata in column.field("metadata").to_pylist()]
    typed = column.field("typed_value")
    parts = {field.name: typed.field(field.name).field("typed_value").to_pylist() for field in typed.type}
    return [
        encode_object({name: encode_primitive(_typed(values[row])) for name, values in parts.items()}, ids[row])
        for row in range(len(column))
    ]


def _typed(value: Any) -> Any:
    return VariantPrimitive(VariantKind.INT64, value) if isinstance(value, int) else value


class _Bench:
    """Two tables with the same rows, of which one is shredded."""

    def __init__(self, ice: Any, size: str) -> None:
        self.ice = ice
        self.size = size
        self.in_file = ROWS_IN_FILE[size]
        ice.catalog.create_namespace("bench")
        for name, shreds in ((SHREDDED, "true"), (PLAIN, "false")):
            properties = {"format-version": "3", "write.parquet.shred-variants": shreds}
            table = ice.catalog.create_table(name, "id long, doc variant", properties=properties)
            for number in range(FILES):
                table.append(self._rows(number))

    def _rows(self, number: int) -> Any:
        numbers = np.arange(number * self.in_file, (number + 1) * self.in_file)
        texts = pa.array([f"value {i}" for i in range(1000)])
        fields = {f"field {k}": encode_column(texts.take(pa.array(numbers * k % 1000)), None) for k in range(FIELDS)}
        fields["n"] = encode_column(pa.array(numbers), VariantKind.INT64)
        metadata, ids = encode_dictionary(fields)
        rows = {name: np.full(self.in_file, name_id) for name, name_id in ids.items()}
        values = encode_objects(fields, rows, np.ones(self.in_file, np.bool_))
        parts = [pa.repeat(pa.scalar(metadata, pa.binary()), self.in_file), values]
        return pa.table({"id": numbers, "doc": pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE))})

    def rows(self) -> Iterator[Row]:
        """All cases on tables."""
        low, high = 10 * self.in_file + 1, (10 + MATCHING) * self.in_file - 1
        few = f"doc:n::long between {low} and {high}"
        assert self._files(SHREDDED, few) == MATCHING
        assert self._files(PLAIN, few) == FILES
        yield self._against_plain(f"filter-{MATCHING}-of-{FILES}-files", few, MATCHING / FILES * 2)
        yield self._against_plain("filter-of-one-field", "doc:n::long >= 0", 1 / 5)
        yield self._against_plain("scan-of-one-field", "", 1 / 5, "doc:n::long")
        yield from self._on_spark(few)

    def _files(self, name: str, text: str) -> int:
        return len(list(self.ice.load_table(name).scan(text).plan_files()))

    def _against_plain(self, case: str, text: str, goal: float, *more: str) -> Row:
        shredded, plain = (self.ice.load_table(name).scan(text, ("id", *more)) for name in (SHREDDED, PLAIN))
        assert shredded.to_arrow().sort_by("id") == plain.to_arrow().sort_by("id")
        ours, theirs = interleave(shredded.to_arrow, plain.to_arrow, REPEAT[self.size])
        return Row(case, ours, theirs, goal, f"{FIELDS + 1} fields, {self.in_file * FILES} rows; theirs is unshredded")

    def _on_spark(self, few: str) -> Iterator[Row]:
        spark = self.ice.spark
        files = [task.file.file_path for task in self.ice.load_table(SHREDDED).scan().plan_files()]
        spark.read.parquet(*files).createOrReplaceTempView("files")
        total = "SELECT sum(variant_get(doc, '$.n', 'bigint')) FROM {}"
        low, high = few.split()[2], few.split()[4]
        some = total + f" WHERE variant_get(doc, '$.n', 'bigint') BETWEEN {low} AND {high}"
        for case, text, other, goal in (
            ("spark-one-field-against-its-own-reader", total, "files", 1.1),
            ("spark-one-field-against-unshredded", total, PLAIN, 1 / 5),
            (f"spark-filter-{MATCHING}-of-{FILES}-files-against-its-own-reader", some, "files", 1.0),
        ):
            ours, theirs = (partial(self._answer, text.format(of)) for of in (SHREDDED, other))
            assert ours() == theirs()
            ours()
            theirs()
            yield Row(case, *interleave(ours, theirs, REPEAT[self.size]), goal)

    def _answer(self, text: str) -> Any:
        return self.ice.sql(text).collect()
