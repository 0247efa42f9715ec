"""Catalogs against the simplest thing that could be one: a dictionary of names. Whatever is done, both say the same."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import (
    AlreadyExistsError,
    IcefloeError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
)
from icefloe.verification import silent
from tests.catalog.tables import SCHEMA

Name = tuple[str, ...]

namespaces = st.lists(st.sampled_from(["a", "A", "b_", "b%"]), min_size=1, max_size=2).map(tuple)
names = st.builds(lambda space, name: (*space, name), namespaces, st.sampled_from(["t", "T", "x.y"]))


class CatalogModel(RuleBasedStateMachine):
    """The names that there should be: what each stands for, and which namespaces were created."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="icefloe-model-"))
        properties: dict[str, Any] = {"type": "memory"}
        if self.kind == "sqlite":
            properties = {"type": "sql", "uri": f"sqlite:///{self.folder}/c.db", "warehouse": "memory://model/w"}
        self.catalog: Catalog = load_catalog("lake", **properties)
        self.created: set[Name] = set()
        self.objects: dict[Name, tuple[str, str | None]] = {}

    def teardown(self) -> None:
        for name, (kind, _) in self.objects.items():
            if kind == "table":
                report = self.catalog.load_table(name).verify(progress=silent)
                assert report.clean, str(report)
        self.catalog.close()
        shutil.rmtree(self.folder)

    def all_namespaces(self) -> set[Name]:
        held = {*self.created, *(name[:-1] for name in self.objects)}
        return {space[:depth] for space in held for depth in range(1, len(space) + 1)}

    def expect(self, error: type[IcefloeError] | None, action: Any) -> Any:
        if error is None:
            return action()
        with pytest.raises(error):
            action()
        return None

    @rule(space=namespaces)
    def create_namespace(self, space: Name) -> None:
        taken = space in self.all_namespaces()
        self.expect(NamespaceAlreadyExistsError if taken else None, lambda: self.catalog.create_namespace(space))
        if not taken:
            self.created.add(space)

    @rule(space=namespaces)
    def drop_namespace(self, space: Name) -> None:
        error: type[IcefloeError] | None = None
        if space not in self.all_namespaces():
            error = NoSuchNamespaceError
        elif any(name[:-1] == space for name in self.objects) or any(
            len(other) > len(space) and other[: len(space)] == space for other in self.all_namespaces()
        ):
            error = NamespaceNotEmptyError
        self.expect(error, lambda: self.catalog.drop_namespace(space))
        if error is None:
            self.created.discard(space)

    @rule(name=names, view=st.booleans())
    def create(self, name: Name, view: bool) -> None:
        error: type[IcefloeError] | None = None
        if name[:-1] not in self.all_namespaces():
            error = NoSuchNamespaceError
        elif name in self.objects:
            error = AlreadyExistsError
        if view:
            made = self.expect(error, lambda: self.catalog.create_view(name, "a int", "SELECT 1"))
        else:
            made = self.expect(error, lambda: self.catalog.create_table(name, SCHEMA))
        if made is not None:
            self.objects[name] = ("view", made.metadata.view_uuid) if view else ("table", made.metadata.table_uuid)

    @rule(name=names)
    def drop_table(self, name: Name) -> None:
        there = self.objects.get(name, ("", None))[0] == "table"
        self.expect(None if there else NoSuchTableError, lambda: self.catalog.drop_table(name))
        if there:
            del self.objects[name]

    @rule(name=names)
    def drop_view(self, name: Name) -> None:
        there = self.objects.get(name, ("", None))[0] == "view"
        self.expect(None if there else NoSuchViewError, lambda: self.catalog.drop_view(name))
        if there:
            del self.objects[name]

    @precondition(lambda self: self.objects)
    @rule(data=st.data(), new=names)
    def rename(self, data: st.DataObject, new: Name) -> None:
        source = data.draw(st.sampled_from(sorted(self.objects)))
        kind = self.objects[source][0]
        error: type[IcefloeError] | None = None
        if source != new and new[:-1] not in self.all_namespaces():
            error = NoSuchNamespaceError
        elif source != new and new in self.objects:
            error = AlreadyExistsError
        action = self.catalog.rename_table if kind == "table" else self.catalog.views.rename
        self.expect(error, lambda: action(source, new))
        if error is None:
            self.objects[new] = self.objects.pop(source)

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.objects)))
        if self.objects[name][0] == "table":
            self.catalog.load_table(name).set_properties({"a": str(data.draw(st.integers(0, 3)))})
        else:
            self.catalog.views.replace(name, "a int", f"SELECT {data.draw(st.integers(0, 3))}")

    @invariant()
    def names_are_the_same(self) -> None:
        spaces = self.all_namespaces()
        for parent in ((), *spaces):
            children = sorted(each for each in spaces if len(each) == len(parent) + 1 and each[:-1] == parent)
            assert self.catalog.list_namespaces(parent) == children
        for space in spaces:
            for kind, listed in (("table", self.catalog.list_tables), ("view", self.catalog.list_views)):
                there = sorted(n for n, (found, _) in self.objects.items() if found == kind and n[:-1] == space)
                assert listed(space) == there

    @invariant()
    def names_stand_for_the_same(self) -> None:
        for name, (kind, uuid) in self.objects.items():
            if kind == "table":
                assert self.catalog.load_table(name).metadata.table_uuid == uuid
            else:
                assert self.catalog.load_view(name).metadata.view_uuid == uuid


class SqliteModel(CatalogModel):
    kind = "sqlite"


FEW = settings(max_examples=15, stateful_step_count=20)

TestMemoryModel = CatalogModel.TestCase
TestMemoryModel.settings = FEW
TestSqliteModel = SqliteModel.TestCase
TestSqliteModel.settings = FEW
