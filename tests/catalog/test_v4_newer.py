"""v4 as newer texts and other writers have it: what is not known is kept, and what would be broken is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe import errors
from icefloe.catalog import Catalog
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.schema import reserved
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, V4_PIN

PIN = "icefloe.v4.pin"
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = icefloe.load_catalog("newer", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    made.create_namespace("db")
    return made


def made(catalog: Catalog, version: int = 4) -> Table:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": str(version)})
    table.append(ROWS)
    return table


def document(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(table.storage.read(str(table.metadata_location)))
    return found


def changed(catalog: Catalog, table: Table, **fields: Any) -> Table:
    """The table after another writer put more into its metadata file."""
    content = document(table)
    content |= {key.replace("_", "-"): value for key, value in fields.items()}
    table.storage.write(str(table.metadata_location), json.dumps(content).encode())
    return catalog.load_table("db.t")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_fields_that_are_not_known_are_carried_on(catalog: Catalog, version: int) -> None:
    table = made(catalog, version)
    snapshots = document(table)["snapshots"]
    if version == 4:
        snapshots[0]["constraint-statuses"] = [{"constraint-id": 1, "status": "validated"}]
    table = changed(catalog, table, x_new={"a": [1, None, "é"]}, last_constraint_id=7, snapshots=snapshots)
    table.append(ROWS)
    table.set_properties({"a": "b"})
    with table.update_schema() as update:
        update.add_column("more", "int")
    after = document(table)
    assert (after["x-new"], after["last-constraint-id"]) == ({"a": [1, None, "é"]}, 7)
    assert after["snapshots"][0] == snapshots[0]
    assert metadata_from_json(metadata_to_json(table.metadata)) == table.metadata
    assert len(table.scan().to_arrow()) == 4


def test_fields_inside_of_parts_are_carried_on_in_v4(catalog: Catalog) -> None:
    table = made(catalog)
    table.manage_snapshots().create_tag("first").commit()
    with table.update_sort_order() as order:
        order.asc("id", "identity")
    before = document(table)
    schemas, specs, orders, refs = (before[key] for key in ("schemas", "partition-specs", "sort-orders", "refs"))
    schemas[0] |= {"x-of-schema": {"a": [1]}}
    schemas[0]["fields"][0] |= {"collation": "icu.de"}
    specs[0]["x-of-spec"] = 5
    orders[-1]["fields"][0]["x-of-order"] = None
    refs["first"]["x-of-ref"] = "y"
    table = changed(catalog, table, schemas=schemas, partition_specs=specs, sort_orders=orders, refs=refs)
    table.append(ROWS)
    table.set_properties({"a": "b"})
    after = document(table)
    assert after["schemas"] == schemas
    assert after["partition-specs"] == specs
    assert after["sort-orders"] == orders
    assert after["refs"]["first"] == refs["first"]
    assert metadata_from_json(metadata_to_json(table.metadata)) == table.metadata
    with pytest.raises(errors.StateError, match=r"collation, x-of-schema.*would lose"), table.update_schema() as update:
        update.add_column("more", "int")
    with pytest.raises(errors.StateError, match="x-of-spec"), table.refresh().update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    assert len(table.refresh().scan().to_arrow()) == 4


def test_lineage_columns_have_stats_where_files_have_them(catalog: Catalog) -> None:
    table = made(catalog)
    table.append(ROWS)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    (task,) = table.scan().with_metrics().plan_files()
    numbers = {field.name: field.field_id for field in reserved.ROW_LINEAGE_COLUMNS}
    for name, low, high in (("_row_id", 0, 3), ("_last_updated_sequence_number", 1, 2)):
        field_id = numbers[name]
        assert task.file.lower_bounds[field_id] == low.to_bytes(8, "little")
        assert task.file.upper_bounds[field_id] == high.to_bytes(8, "little")
        assert (task.file.value_counts[field_id], task.file.null_value_counts[field_id]) == (4, 0)


def test_rows_that_constraints_are_about_are_refused(catalog: Catalog) -> None:
    rule = {"constraint-id": 1, "type": "check", "name": "positive", "expression": {"type": "gt"}}
    table = changed(catalog, made(catalog), constraints=[rule], last_constraint_id=1)
    assert len(table.scan().to_arrow()) == 2
    with pytest.raises(errors.StateError, match="17822"):
        table.append(ROWS)
    with pytest.raises(errors.StateError, match="17822"):
        table.delete("id = 1")
    table.refresh().set_properties({"a": "b"})
    assert document(table)["constraints"] == [rule]
    assert table.verify(progress=lambda *_: None).ok


def test_a_table_says_by_which_text_it_is_written(catalog: Catalog) -> None:
    table = made(catalog)
    assert table.properties[PIN] == V4_PIN
    table.set_properties({PIN: "2026-05-20"})
    table.append(ROWS)
    assert table.properties[PIN] == V4_PIN, "an older text is replaced by ours"
    for newer in ("2027-01-01", "who knows"):
        table.set_properties({PIN: newer})
        assert len(table.scan().to_arrow()) == 4
        with pytest.raises(errors.StateError, match=f"{newer}.*{V4_PIN}"):
            table.append(ROWS)
        table.refresh()
    assert [str(each.code) for each in table.verify(progress=lambda *_: None).findings] == ["newer-text"]
    table.set_properties({PIN: V4_PIN})
    table.append(ROWS)
    assert table.verify(progress=lambda *_: None).ok


@pytest.mark.parametrize("version", ALL_VERSIONS[:-1])
def test_adopted_versions_have_no_pin(catalog: Catalog, version: int) -> None:
    assert PIN not in made(catalog, version).properties


def test_root_manifests_are_refused_by_their_number(catalog: Catalog) -> None:
    table = made(catalog)
    snapshots = document(table)["snapshots"]
    snapshots[0]["root-manifest"] = snapshots[0].pop("manifest-list")
    with pytest.raises(errors.UnsupportedVersionError, match=r"root-manifest.*16025"):
        changed(catalog, table, snapshots=snapshots)


def test_columns_of_files_are_refused_by_name(catalog: Catalog) -> None:
    table = made(catalog)
    schemas = document(table)["schemas"]
    schemas[0]["fields"].append({"id": 9, "name": "photo", "required": False, "type": "file"})
    with pytest.raises(errors.CorruptFileError, match=r"photo: .*file"):
        changed(catalog, table, schemas=schemas)
