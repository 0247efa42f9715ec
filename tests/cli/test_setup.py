"""Catalogs and configuration from the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_init_makes_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no catalog is configured" in run("list", code=2).err
    first = run("init", "lake", "-o", "json").result()
    assert first == {"file": "lake/icefloe.toml", "catalog": "icefloe", "created": True, "namespaces": 0}
    assert run("init", "lake", "-o", "json").result()["created"] is False
    assert run("--config", "lake/icefloe.toml", "catalog", "test", "--write").out.splitlines()[-1].endswith("done")
    assert list((tmp_path / "lake" / "icefloe-warehouse").iterdir()) == [
        tmp_path / "lake" / "icefloe-warehouse" / "catalog.db"
    ]


def test_the_embedded_catalog_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    from icefloe.catalog import embedded_catalog

    monkeypatch.chdir(tmp_path)
    with embedded_catalog() as catalog:
        catalog.create_namespace("demo")
    assert run("list").out == "demo\n"


def test_catalogs_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    run("catalog", "add", "lake", "--type", "hadoop", "--warehouse", "house", "-p", "s3.secret-access-key=hunter22")
    run("catalog", "add", "odd name", "--type", "memory")
    rows = run("catalog", "list", "-o", "json").result()
    assert [(row["name"], row["type"]) for row in rows] == [("lake", "hadoop"), ("odd name", "memory")]
    assert "already has a catalog 'Lake'" in run("catalog", "add", "Lake", "--type", "memory", code=4).err
    shown = run("-c", "lake", "config", "show")
    assert "hunter22" not in shown.out
    assert "s3.secret-access-key  ***" in shown.out
    assert run("-c", "lake", "catalog", "test", "--write").code == 0
    refused = run("catalog", "remove", "lake", code=4)
    assert "pass --yes to confirm" in refused.err
    run("catalog", "remove", "lake", "--yes")
    assert [row["name"] for row in run("catalog", "list", "-o", "json").result()] == ["odd name"]
    assert "has no section [catalog.lake]" in run("catalog", "remove", "lake", "--yes", code=3).err
    assert "catalog 'none' has no settings" in run("catalog", "add", "none", code=2).err


def test_a_catalog_by_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--uri", f"sqlite:///{tmp_path}/c.db", "--warehouse", str(tmp_path / "w"))
    assert run(*options, "list").out == ""
    assert run(*options, "config", "show", "-o", "json").result()["settings"][0] == {
        "catalog": "default",
        "key": "uri",
        "value": f"sqlite:///{tmp_path}/c.db",
        "source": "an argument",
    }


def test_names_may_begin_with_a_catalog(lake: Path, run: Run) -> None:
    assert run("count", "icefloe.shop.orders").out == "19\n"
    assert "no table icefloe.shop.orders" in run("-c", "icefloe", "count", "icefloe.shop.orders", code=3).err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    assert "_ICEFLOE_COMPLETE" in run("completion", "show", shell).out
    assert "completion is not available for 'csh'" in run("completion", "show", "csh", code=2).err


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("icefloe desc", ["describe"]),
        ("icefloe describe sh", ["shop."]),
        ("icefloe describe shop.", ["shop.eu.", "shop.orders", "shop.big"]),
        ("icefloe metadata shop.orders all_m", ["all_manifests"]),
        ("icefloe head shop.orders@", ["shop.orders@main", "shop.orders@audit", "shop.orders@v1"]),
        ("icefloe branch delete shop.orders a", ["audit"]),
        ("icefloe -c i", ["icefloe"]),
        ("icefloe list -o json", ["json", "jsonl"]),
        ("icefloe create n", ["namespace"]),
        ("icefloe head shop.orders --wh", ["--where"]),
        ("icefloe describe nowhere.", []),
    ],
)
def test_names_are_completed(
    lake: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    expected: list[str],
) -> None:
    from icefloe.cli.main import main

    monkeypatch.setenv("_ICEFLOE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == expected


def test_version(run: Run) -> None:
    import icefloe

    assert run("version").out == f"{icefloe.__version__}\n"
    assert run("version", "-o", "json").result()["icefloe"] == icefloe.__version__
