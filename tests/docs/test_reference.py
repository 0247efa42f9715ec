"""The pages of the reference are what the code says."""

from pathlib import Path

import pytest

from docs.property_meanings import GROUPS, MEANINGS
from docs.reference_pages import PAGES, known_properties

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), (
        f"docs/{name} is out of date; make docs writes it"
    )


def test_every_property_is_explained_once() -> None:
    assert known_properties().keys() == MEANINGS.keys()
    for key in MEANINGS:
        assert sum(key.startswith(prefixes) for prefixes in GROUPS.values()) == 1, key
