"""`icefloe ui` as a person starts it: the address that it prints lets them in, and nobody else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from icefloe.catalog import embedded_catalog
from icefloe.errors import InvalidPropertyError
from icefloe.ui.command import open_site


def test_the_command_prints_an_address_that_lets_in(tmp_path: Path) -> None:
    warehouse = tmp_path / "wh"
    with embedded_catalog(warehouse) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table("shop.orders", schema="id long")
    command = [sys.executable, "-m", "icefloe", "ui", "--warehouse", str(warehouse), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path)
    try:
        assert process.stderr is not None
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, "the command ended"
            match = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
            address = match and match[0]
        with httpx.Client(trust_env=False, timeout=30, follow_redirects=True) as client:
            page = client.get(address)
            assert page.status_code == 200
            assert "shop" in page.text
            assert "token" not in str(page.url)
            assert "read only" in page.text
            base = address.partition("/?")[0]
            assert client.get(f"{base}/t/icefloe/shop/orders").status_code == 200
        assert httpx.get(base, trust_env=False).status_code == 401
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_catalogs_come_from_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidPropertyError, match="icefloe init"):
        open_site(None, None, None)
    with pytest.raises(InvalidPropertyError, match=r"catalog\.db is missing"):
        open_site(None, None, str(tmp_path / "nothing"))
    config = tmp_path / "icefloe.toml"
    config.write_text(
        '[catalog.a]\ntype = "memory"\ntoken = "secret"\n[catalog.b]\ntype = "memory"\nwarehouse = "memory://x"\n'
    )
    both = open_site(str(config), None, None)
    assert list(both.catalogs) == ["a", "b"]
    assert both.sources["a"]["token"][0] == "***"
    assert list(open_site(str(config), ["b"], None, is_writable=True).catalogs) == ["b"]
