"""The examples in docstrings run, and do what they say."""

import doctest
import importlib
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import icefloe

MODULES = (
    "icefloe.catalog.catalog",
    "icefloe.catalog.views",
    "icefloe.table.changes",
    "icefloe.table.handle",
    "icefloe.table.scan",
    "icefloe.table.transaction",
)


def surroundings(warehouse: str = "memory://docs/warehouse") -> dict[str, Any]:
    """What every example finds: a catalog with a table of three orders."""
    catalog = icefloe.load_catalog("docs", type="memory", warehouse=warehouse)
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", "id bigint, region string, total double")
    table.append(pa.table({"id": [1, 2, 3], "region": ["eu", "us", "eu"], "total": [10.0, 20.0, 30.0]}))
    return {"icefloe": icefloe, "pa": pa, "pl": pl, "catalog": catalog, "table": table}


def examples(*modules: str) -> list[doctest.DocTest]:
    """The examples in the docstrings of modules."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for name in modules for test in finder.find(importlib.import_module(name), name)]
    return [test for test in tests if test.examples]


def check(test: doctest.DocTest, **surroundings: Any) -> None:
    """Run an example among these names."""
    test.globs = surroundings
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("test", examples(*MODULES), ids=lambda test: test.name)
def test_an_example_does_what_it_says(test: doctest.DocTest) -> None:
    check(test, **surroundings())


def test_every_module_has_examples() -> None:
    assert all(examples(name) for name in MODULES)
