"""JSON is of the shape that docs/cli.md says: the keys of each command, its rows and its types."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
LINES = {
    "list": ("list", "shop", "-l"),
    "tree": ("tree", "-l"),
    "describe": ("describe", "shop.orders"),
    "schema": ("schema", "shop.orders"),
    "snapshots": ("snapshots", "shop.orders"),
    "log": ("log", "shop.orders", "--all"),
    "refs": ("refs", "shop.orders"),
    "stats": ("stats", "shop.orders"),
    "count": ("count", "shop.orders"),
    "du": ("du", "shop.orders"),
    "diff": ("diff", "shop.orders@v1", "shop.orders"),
    "doctor": ("doctor", "shop.orders"),
    "verify": ("verify", "shop.orders"),
    "maintain": ("maintain", "shop.orders"),
    "config show": ("config", "show"),
}
CODES = {"diff": 1}


def documented() -> dict[str, tuple[bool, set[str]]]:
    """What the page says of each command: whether the result is rows, and the keys."""
    table = PAGE.read_text().partition("| Command | Result in JSON |")[2].partition("\n\n")[0]
    known = {}
    for line in table.splitlines()[2:]:
        commands, text = line.strip("| ").split(" | ", 1)
        text = re.sub(r"\([^)]*\)", "", text)
        keys = {key for key in re.findall(r"`([a-z_]+)`", text) if key not in ("log",)}
        for command in re.findall(r"`([^`]+)`", commands):
            known[command] = (text.startswith("rows with"), keys)
    return known


@pytest.mark.parametrize("command", sorted(LINES))
def test_the_shape_of(lake: Path, run: Run, command: str) -> None:
    is_rows, keys = documented()[command]
    result: Any = run(*LINES[command], "-o", "json", code=CODES.get(command, 0)).result()
    assert isinstance(result, list) is is_rows
    rows = result if is_rows else [result]
    actual = {key for row in rows for key in row}
    if command == "du":
        actual = {key.rpartition("_")[0] if key != "table" else key for key in actual}
    if command == "log":
        assert "lane" in actual
    else:
        actual -= {"lane"}
        keys -= {"lane"}
    if command == "config show":
        keys -= {"catalog", "key", "value", "source"}
    if command == "maintain":
        keys -= {"outcome", "seconds", "bytes"}
    assert actual == keys or (command == "verify" and not rows), actual ^ keys
    for row in rows:
        for name in ("snapshot_id", "parent_id", "sequence_number", "current_snapshot_id"):
            assert isinstance(row.get(name), str | None), name
