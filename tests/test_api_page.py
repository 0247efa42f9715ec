"""docs/api.md is what the code says."""

import icefloe
from docs.api_page import CLASSES, FUNCTIONS, PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "docs/api.md is out of date; make docs writes it"


def test_every_public_name_is_on_the_page() -> None:
    named = {path.rpartition(".")[2] for path in (*FUNCTIONS, *CLASSES)}
    assert {*icefloe.__all__} - named == {"IcefloeError", "Schema", "__version__"}


def test_every_entry_says_what_it_is() -> None:
    entries = [line for line in page().splitlines() if line.lstrip().startswith("- `")]
    assert len(entries) > 200
    assert [line for line in entries if not line.endswith((".", "`"))] == []
