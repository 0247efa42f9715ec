"""The package itself: public names are found, and importing it is cheap."""

import subprocess
import sys

import pytest

import icefloe


@pytest.mark.parametrize("name", ["Catalog", "IcefloeError", "Schema", "Table", "col", "load_catalog"])
def test_public_names(name: str) -> None:
    assert getattr(icefloe, name).__name__ == name
    assert name in dir(icefloe)


def test_other_names_are_told_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'nope'; it has .*load_catalog"):
        icefloe.nope  # noqa: B018  # the access is the test


def test_importing_the_package_imports_no_room() -> None:
    code = "import sys, icefloe; print(*[name for name in sys.modules if name.startswith(('icefloe.', 'pyarrow', 'numba'))])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
