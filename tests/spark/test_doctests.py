"""The examples in the docstrings of `Session` run, and do what they say."""

import doctest
from pathlib import Path
from typing import Any

import pytest

from icefloe.spark.session import Session
from tests.test_doctests import check, examples, surroundings

MODULE = "icefloe.spark.session"


@pytest.mark.parametrize("test", examples(MODULE), ids=lambda test: test.name)
def test_an_example_does_what_it_says(spark: Any, test: doctest.DocTest, tmp_path: Path) -> None:
    names = surroundings(str(tmp_path))
    check(test, **names, ice=Session(spark, {"docs": names["catalog"]}))
