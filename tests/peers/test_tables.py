"""Tables put together by hand keep to the rules of their version too."""

from pathlib import Path

import pytest

from icefloe.errors import IcefloeError
from icefloe.manifests import FileContent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table
from tests.peers.rows import ROWS, SCHEMA
from tests.peers.tables import HandmadeTable


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_versions_without_delete_files_refuse_them(version: int, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, version)
    data = table.write_data(arrow_table(table.schema, ROWS))
    delete = data.__class__(data.file_path + ".d", "parquet", 1, 10, FileContent.EQUALITY_DELETES, equality_ids=(1,))
    if allows(version, Feature.DELETE_FILES):
        table.commit([data, delete], "overwrite")
    else:
        with pytest.raises(IcefloeError, match="delete"):
            table.commit([data, delete], "overwrite")
