"""The docs point at things that exist: every relative link, and every module path that they name."""

import re
from pathlib import Path

import pytest

import icefloe
from icefloe.catalog import Catalog
from icefloe.inspect import Inspect
from icefloe.maintenance import Maintenance
from icefloe.table import DataScan, Table

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
MODULE = re.compile(r"`((?:icefloe/)?(?:[a-z_]+/)*[a-z_]+\.py|(?:icefloe/)?[a-z_]+/)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not broken, f"{page.name} links to what is not there: {broken}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/failures.md"])
def test_pages_name_modules_that_exist(page: str) -> None:
    text = (ROOT / page).read_text().split("Planned, and not here yet")[0]
    named = MODULE.findall(text)
    missing = [name for name in named if not ((ROOT / "icefloe" / name).exists() or (ROOT / name).exists())]
    assert named
    assert not missing, f"{page} names what is not there: {missing}"


def test_every_room_is_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "icefloe").iterdir() if (path / "__init__.py").exists()}
    assert {room for room in rooms if f"`{room}/`" not in text} == set()


def test_the_steps_of_walks_are_in_the_rooms_that_they_are_said_to_be_in() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text().split("## Walks")[1].split("\n## ")[0]
    cells = [re.findall(r"`([^`]+)`", cell) for line in section.splitlines() for cell in line.split("|")[1:3]]
    walked = [(name, rooms) for rooms, steps in zip(cells[::2], cells[1::2], strict=True) for name in steps]
    assert len(walked) > 80
    assert not [
        f"{name} in {rooms}"
        for name, rooms in walked
        if not any(_defines(module, name) for room in rooms for module in (ROOT / "icefloe" / room).rglob("*.py"))
    ]


def _defines(module: Path, name: str) -> bool:
    *classes, last = name.split(".")
    text = module.read_text()
    return all(re.search(rf"^class {each}\b", text, re.MULTILINE) for each in classes) and bool(
        re.search(rf"^ *(def|class) {last}\b", text, re.MULTILINE)
    )


def test_calls_that_are_the_same_as_those_of_pyiceberg_exist() -> None:
    homes = (icefloe, Catalog, Table, DataScan, Inspect, Maintenance)
    rows = [
        line.split("|")[1:3]
        for line in (ROOT / "docs" / "migrating-from-pyiceberg.md").read_text().splitlines()
        if line.startswith("|")
    ]
    named = [
        re.split(r"[.]", span.partition("(")[0])[-1]
        for theirs, ours in rows
        if ours.strip().startswith("the same")
        for span in re.findall(r"`([^`]+)`", theirs)
    ]
    assert len(named) > 20
    assert not [name for name in named if not any(hasattr(home, name) for home in homes)]
