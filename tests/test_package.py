"""The package itself: public names are found, and importing it is cheap."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import icefloe


@pytest.mark.parametrize("name", sorted({*icefloe.__all__} - {"__version__"}))
def test_public_names(name: str) -> None:
    assert getattr(icefloe, name).__name__ == name
    assert name in dir(icefloe)


def test_the_list_of_public_names_is_complete() -> None:
    lists = re.findall(r"^    from \S+ import (.+)$", Path(icefloe.__file__).read_text(), re.MULTILINE)
    imported = [name for names in lists for name in names.split(", ")]
    assert sorted([*imported, "__version__"]) == sorted(icefloe.__all__) == sorted([*icefloe._HOMES, "__version__"])


def test_the_version_is_in_one_place() -> None:
    assert metadata.version("icefloe") == icefloe.__version__


def test_other_names_are_told_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'nope'; available are .*load_catalog"):
        icefloe.nope  # noqa: B018  # the access is the test


def test_importing_the_package_imports_no_room() -> None:
    code = "import sys, icefloe; print(*[name for name in sys.modules if name.startswith(('icefloe.', 'pyarrow', 'numba'))])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_the_wheel_has_the_module_in_which_spark_looks_for_the_format() -> None:
    project = Path(icefloe.__file__).parents[1]
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["icefloe", "pyspark_icefloe"]
    assert all((project / name / "__init__.py").exists() for name in packages)
