"""PyIceberg's command lines run unchanged: the same arguments, on one catalog, by both."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyiceberg.cli.console import run as pyiceberg

import icefloe
from icefloe.cli.main import main

LINES = [
    ["list"],
    ["list", "shop"],
    ["describe", "shop"],
    ["describe", "shop.orders"],
    ["describe", "--entity", "namespace", "shop"],
    ["describe", "--entity", "table", "shop.orders"],
    ["files", "shop.orders"],
    ["files", "--history", "shop.orders"],
    ["schema", "shop.orders"],
    ["spec", "shop.orders"],
    ["uuid", "shop.orders"],
    ["location", "shop.orders"],
    ["version"],
    ["create", "namespace", "new"],
    ["properties", "get", "namespace", "shop"],
    ["properties", "get", "table", "shop.orders"],
    ["properties", "set", "namespace", "shop", "a", "b"],
    ["properties", "get", "namespace", "shop", "a"],
    ["properties", "remove", "namespace", "shop", "a"],
    ["properties", "set", "table", "shop.orders", "a", "b"],
    ["properties", "get", "table", "shop.orders", "a"],
    ["properties", "remove", "table", "shop.orders", "a"],
    ["list-refs", "shop.orders"],
    ["list-refs", "--type", "branch", "shop.orders"],
    ["rename", "shop.orders", "shop.renamed"],
    ["drop", "table", "shop.renamed"],
    ["drop", "namespace", "new"],
]
SAME_TEXT = ("list", "location", "create", "rename", "drop")
"""Commands whose text is the same, word by word."""
WRONG = [
    ["describe", "shop.none"],
    ["schema", "shop.none"],
    ["properties", "get", "table", "shop.orders", "none"],
    ["properties", "remove", "namespace", "shop", "none"],
    ["drop", "table", "shop.none"],
    ["drop", "namespace", "none"],
    ["create", "namespace", "shop"],
    ["list-refs", "--type", "cat", "shop.orders"],
    ["nonsense"],
]


Both = Callable[[list[str]], tuple[tuple[int, str], tuple[int, str]]]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Both:
    """Runs a line by us and by them, each on a catalog of its own that is the same; codes, and what is printed."""
    monkeypatch.chdir(tmp_path)
    options = {}
    for name in ("ours", "theirs"):
        uri, house = f"sqlite:///{tmp_path}/{name}.db", str(tmp_path / name)
        options[name] = ["--catalog", "lake", "--uri", uri, "--warehouse", f"file://{house}"]
        with icefloe.load_catalog("lake", type="sql", uri=uri, warehouse=house) as catalog:
            catalog.create_namespace("shop", {"owner": "ann"})
            location = f"file://{tmp_path}/orders"
            catalog.create_table("shop.orders", "id long, region string", location, ["region"], None, {"owner": "bob"})

    def run(line: list[str]) -> tuple[tuple[int, str], tuple[int, str]]:
        theirs = CliRunner().invoke(pyiceberg, [*options["theirs"], *line])
        capsys.readouterr()
        code = main([*options["ours"], *line])
        return (code, capsys.readouterr().out), (theirs.exit_code, theirs.stdout)

    return run


@pytest.mark.filterwarnings("ignore")  # PyIceberg's own
def test_the_same_lines_run(both: Both) -> None:
    for line in LINES:
        (code, text), (their_code, their_text) = both(line)
        assert (code, their_code) == (0, 0), (line, text, their_text)
        assert text or line[0] in ("files",), line
        if line[0] in SAME_TEXT or line[1:2] in (["set"], ["remove"]):
            assert text.split() == their_text.split(), line
    for line in WRONG:
        (code, text), (their_code, _) = both(line)
        assert code != 0, line
        assert their_code != 0, line
        assert text == "", line


@pytest.mark.parametrize(
    "line",
    [
        ["--output", "json", "list"],
        ["--verbose", "true", "list"],
        ["--log-level", "ERROR", "list"],
        ["--credential", "a:b", "list"],
        ["--ugi", "a:b", "list"],
        ["--output", "text", "version"],
    ],
)
@pytest.mark.filterwarnings("ignore")  # PyIceberg's own
def test_options_before_the_command(both: Both, line: list[str]) -> None:
    (code, _), (their_code, _) = both(line)
    assert (code, their_code) == (0, 0)
