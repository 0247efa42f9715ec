"""Commits through handles that are behind: every kind of change after every other one that the handle does not know of.

Whatever the second one does, the table stays readable and whole, and nothing that was acknowledged is lost: it is what both
made of it, or the second one is refused and it is what the first one made of it.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from icefloe.catalog import Catalog, MemoryCatalog, load_catalog
from icefloe.errors import StateError
from icefloe.maintenance import reachable_files
from icefloe.server.app import create_app
from icefloe.storage import memory
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.catalog.behind import KINDS, NAME, Base, make_base, observed
from tests.catalog.rest.loopback import LoopbackServer


@dataclass
class Place:
    """A catalog with the table that all changes begin with; `begin` makes it as it was, with a new catalog."""

    base: Base
    begin: Callable[[], Catalog]


@cache
def in_memory(version: int) -> Place:
    """One for all tests: it is made as it was in no time."""
    catalog = load_catalog("lake", type="memory")
    assert isinstance(catalog, MemoryCatalog)
    catalog.create_namespace("shop")
    base = make_base(catalog, version)
    files, pointers = dict(memory._FILES[catalog._content.token]), dict(catalog._content.pointers)

    def begin() -> Catalog:
        memory._FILES[catalog._content.token] = dict(files)
        catalog._content.pointers = dict(pointers)
        return catalog

    return Place(base, begin)


@contextmanager
def behind_a_server(version: int) -> Iterator[Place]:
    """The one in memory, behind a REST server, which has nothing to go by but requirements."""
    place = in_memory(version)
    with (
        LoopbackServer(create_app({"lake": place.begin()}), lifespan="on") as server,
        load_catalog("lake", type="rest", uri=server.url) as catalog,
    ):

        def begin() -> Catalog:
            place.begin()
            return catalog

        yield Place(place.base, begin)


@contextmanager
def in_folder(kind: str, version: int, folder: Path) -> Iterator[Place]:
    """One in files, which is made as it was by copying them."""
    made: list[Catalog] = []
    original, copy = folder / "original", folder / "lake"
    places = {"warehouse": str(copy / "warehouse")}
    if kind == "sql":
        places["uri"] = f"sqlite:///{copy}/catalog.db"

    def load() -> Catalog:
        for each in made:
            each.close()
        made[:] = [load_catalog("lake", type=kind, **places)]
        return made[0]

    copy.mkdir()
    catalog = load()
    catalog.create_namespace("shop")
    base = make_base(catalog, version)
    catalog.close()
    copy.rename(original)

    def begin() -> Catalog:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        return load()

    yield Place(base, begin)
    made[0].close()


def check(place: Place, catalog_kind: str, first: str, second: str) -> None:
    """The first change, and then the second one through a handle that was loaded before."""
    one, two, base = KINDS[first], KINDS[second], place.base
    catalog = place.begin()
    faster, behind = catalog.load_table(NAME), catalog.load_table(NAME)
    one.do(faster, base, 0)
    expected = one.effect(base.world, 0)
    needed = one.touches & two.needs
    try:
        two.do(behind, base, 1)
        refused = None
        expected = two.effect(expected, 1)
    except StateError as error:
        refused = error
    note = f"{catalog_kind} v{base.version}: {first}, then {second}: {refused}"
    assert (refused is not None) is bool(needed), f"{note}; it needs {sorted(needed)}"
    now = catalog.load_table(NAME)
    assert observed(now, base) == expected, note
    report = now.verify(
        level="data", locations=[str(faster.location()).partition("-")[0], str(faster.location())], workers=1
    )
    assert report.clean, f"{note}: {report}"
    for each in reachable_files(now.metadata, now.metadata_location, now.storage).all():
        assert now.storage.exists(each), f"{note}: {each} is missing"


def kinds_for(catalog_kind: str, version: int) -> list[str]:
    """The kinds of change that such a catalog and version know."""
    return [name for name, each in KINDS.items() if catalog_kind in each.catalogs and version in each.versions]


def versions_for(catalog_kind: str) -> list[int]:
    """The versions that such a catalog takes."""
    return [each for each in ALL_VERSIONS if catalog_kind != "hadoop" or allows(each, Feature.FILE_SYSTEM_TABLES)]


IN_MEMORY = [(version, first) for version in ALL_VERSIONS for first in kinds_for("memory", version)]
IN_FOLDERS = [(kind, version) for kind in ("sql", "hadoop") for version in versions_for(kind)]


def some_seconds(version: int, first: str) -> list[str]:
    """In one of the versions, every pair that meets in something, and a third of those that do not; the slow tests have all."""
    known, one = kinds_for("memory", version), KINDS[first]
    every, offset = len(ALL_VERSIONS), version - known.index(first)
    return [
        second
        for number, second in enumerate(known[offset % every :: every])
        if one.touches & (KINDS[second].needs | KINDS[second].touches) or (number + offset) % 3 == 0
    ]


@pytest.mark.parametrize(("version", "first"), IN_MEMORY)
def test_a_handle_that_is_behind_loses_nothing(version: int, first: str) -> None:
    for second in some_seconds(version, first):
        check(in_memory(version), "memory", first, second)


@pytest.mark.parametrize(("kind", "version"), IN_FOLDERS)
def test_nor_does_it_in_catalogs_that_others_share(kind: str, version: int, tmp_path: Path) -> None:
    known = kinds_for(kind, version)
    with in_folder(kind, version, tmp_path) as place:
        for position, first in enumerate(known):
            for second in known[(7 * position + version) % 75 :: 75]:
                check(place, kind, first, second)
        check(place, kind, "create tag", "expire by age")
        check(place, kind, "create branch", "expire by id")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_nor_does_it_behind_a_server(version: int) -> None:
    known = kinds_for("memory", version)
    with behind_a_server(version) as place:
        for position, first in enumerate(known):
            for second in known[(7 * position + version) % 75 :: 75]:
                check(place, "rest", first, second)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "first"), IN_MEMORY)
def test_nor_anything_behind_a_server(version: int, first: str) -> None:
    with behind_a_server(version) as place:
        for second in kinds_for("memory", version):
            check(place, "rest", first, second)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "first"), IN_MEMORY)
def test_no_handle_that_is_behind_loses_anything(version: int, first: str) -> None:
    for second in kinds_for("memory", version):
        check(in_memory(version), "memory", first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version", "first"),
    [(kind, version, each) for kind, version in IN_FOLDERS for each in kinds_for(kind, version)],
)
def test_nor_anything_in_catalogs_that_others_share(kind: str, version: int, first: str, tmp_path: Path) -> None:
    with in_folder(kind, version, tmp_path) as place:
        for second in kinds_for(kind, version):
            check(place, kind, first, second)
