"""What the page says of a run."""

import datetime as dt

import pytest

from tests.peers.engines import SAMPLE
from tests.peers.java import PROJECT
from tests.peers.page import END, START, THROUGH_REST, Cell, Results, page_with

DAY = dt.date(2026, 1, 2)


def page(*cells: Cell) -> str:
    results = Results(list(cells), {"java": "9.9", "pyiceberg": "1.1"})
    return page_with(f"words\n{START}\nold\n{END}\nmore", results, DAY)


def test_only_the_part_between_the_markers_is_written() -> None:
    found = page(Cell("we write", "java", "nested", 1, True))
    assert found.startswith(f"words\n{START}\n")
    assert found.endswith(f"{END}\nmore")
    assert "old" not in found
    assert "| Java Iceberg | 9.9 |" in found
    assert "Seen on 2026-01-02." in found


def test_cells_are_green_red_or_not_supported_with_a_reason() -> None:
    found = page(
        Cell("we write", "java", "nested", 1, True),
        Cell("we write", "java", "nested", 2, False),
        Cell("we write", "pyiceberg", "nested", 1, True),
        Cell("we write", "pyiceberg", SAMPLE, 4, True),
    )
    [row] = [line for line in found.splitlines() if line.startswith("| every nested type")]
    assert row.split(" | ")[1:] == ["v1; **red: v2**", "not v1 (1) |"]
    assert "1. PyIceberg: null lists of structs are read as empty lists: apache/iceberg-python issue 3833." in found
    # Of a version that a peer does not read, one scenario speaks for all.
    assert "- Not v4: PyIceberg knows v1 to v3." in found


def test_a_row_is_as_good_as_all_its_tests() -> None:
    cells = [Cell("in turn", "java", "append", 2, passed) for passed in (True, False, True)]
    assert "| Java Iceberg | append | **red: v2** |" in page(*cells)


def test_servers_that_read_no_tables_have_rows_too() -> None:
    results = Results([Cell(THROUGH_REST, "nessie", "our client", 2, True)], {"nessie": "0.1"})
    found = page_with(f"{START}{END}", results, DAY)
    assert "| Nessie | 0.1 |" in found
    assert "| Nessie | our client | v2 |" in found


def test_a_page_without_markers_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no part between"):
        page_with("words", Results(), DAY)


def test_the_page_of_the_project_has_them() -> None:
    text = (PROJECT / "docs" / "interoperability.md").read_text()
    assert text.index(START) < text.index(END)
