"""Which columns of a Parquet file are read as dictionaries: texts that are stored so, for less than half of the time.

Parquet's reader copies the text of each value. As a dictionary it gives the numbers of the values and each text once, so that
a filter may ask each text once, and only the texts of rows that are left are copied.
"""

from collections.abc import Sequence

import pyarrow.parquet as pq

_WRITERS = ("parquet-cpp-arrow ", "parquet-mr ", "parquet-rs ")
"""Their dictionaries hold each value once: where one comes twice, Arrow takes it for one, and mistakes all after it."""
_LEAST_BYTES = 4
"""What a text takes that is not in a dictionary: its length, at least."""


def read_as_dictionaries(footer: pq.FileMetaData, columns: Sequence[int]) -> list[str]:
    """The paths of those of the columns of texts that are stored as dictionaries in all row groups, most values at least."""
    if not (footer.created_by or "").startswith(_WRITERS):
        return []
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        footer.schema.column(index).path
        for index in columns
        if all(_is_encoded(group.column(index)) for group in groups)
    ]


def _is_encoded(chunk: pq.ColumnChunkMetaData) -> bool:
    # A writer that finds too many values goes on without a dictionary: hashing these takes longer than copying them.
    return bool(chunk.has_dictionary_page and chunk.total_uncompressed_size < _LEAST_BYTES * chunk.num_values)
