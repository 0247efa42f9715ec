"""A file that comes with a folder gets no secrets of the user's: neither by the name of a catalog, nor by who is logged in."""

from pathlib import Path

import pytest

from icefloe.catalog import configured_catalog, distrust, find_configuration, is_trusted, load_catalog, trust
from icefloe.errors import InvalidPropertyError

EVIL = "https://evil.example/api"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; the home of the user is elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "ICEFLOE_CONFIG", "PYICEBERG_HOME", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "clone"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def says(folder: Path, *lines: str) -> Path:
    file = folder / "icefloe.toml"
    file.write_text("[catalog.lake]\n" + "\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        ({"TOKEN": "secret"}, [f'uri = "{EVIL}"']),
        ({"CREDENTIAL": "id:secret"}, [f'uri = "{EVIL}"']),
        ({"CREDENTIAL": "id:secret", "URI": "https://good.example"}, [f'oauth2-server-uri = "{EVIL}"']),
        ({"HEADER__AUTHORIZATION": "secret"}, [f'uri = "{EVIL}"', 'type = "rest"']),
        ({"REST__AUTH__BASIC__PASSWORD": "secret"}, [f'uri = "{EVIL}"', 'rest.auth.type = "basic"']),
        ({"S3__SECRET_ACCESS_KEY": "secret"}, ['type = "memory"', f's3.endpoint = "{EVIL}"']),
        ({"ADLS__ACCOUNT_KEY": "secret"}, ['type = "memory"', 'adls.account-host = "evil.example"']),
        ({"ANYTHING_NEW": "secret"}, [f'uri = "{EVIL}"']),
        ({"TOKEN": "secret", "URI": "https://good.example"}, ['rest.client.proxy.hostname = "evil.example"']),
        ({"TOKEN": "secret", "URI": "https://good.example"}, ['rest.auth.type = "basic"']),
    ],
)
@pytest.mark.parametrize("prefix", ["ICEFLOE", "PYICEBERG"])
def test_secrets_of_the_environment_go_where_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, variables: dict[str, str], lines: list[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"{prefix}_CATALOG__LAKE__{name}", value)
    file = says(folder, *lines)
    with pytest.raises(InvalidPropertyError, match=r"is in the working directory, so .*_CATALOG__LAKE__") as said:
        load_catalog("lake")
    assert "'secret'" not in str(said.value)
    assert "id:secret" not in str(said.value)
    assert "icefloe config trust icefloe.toml" in str(said.value)
    assert find_configuration(file).properties("lake")
    assert load_catalog("other", type="memory").name == "other"


def test_what_is_meant_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFLOE_CATALOG__LAKE__TOKEN", "secret")
    says(folder, 'uri = "https://good.example"')
    monkeypatch.setenv("ICEFLOE_CATALOG__LAKE__URI", "https://good.example")
    assert load_catalog("lake", warehouse="w").properties["token"] == "secret"
    monkeypatch.delenv("ICEFLOE_CATALOG__LAKE__URI")
    assert load_catalog("lake", uri="https://good.example").properties["token"] == "secret"
    assert load_catalog("lake", token="mine").properties["token"] == "mine"
    says(folder, 'uri = "sqlite:///c.db"', 'warehouse = "house"', 's3.region = "eu"')
    monkeypatch.setenv("ICEFLOE_CATALOG__LAKE__S3__SECRET_ACCESS_KEY", "secret")
    with load_catalog("lake") as catalog:
        assert catalog.warehouse == f"file://{folder}/house"


def test_a_file_that_is_trusted_is_trusted_until_it_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFLOE_CATALOG__LAKE__TOKEN", "secret")
    file = says(folder, 'uri = "https://good.example"', 'scope = "${HOME}"')
    with pytest.raises(InvalidPropertyError, match="must not read variables"):
        find_configuration()
    trust("icefloe.toml")
    assert load_catalog("lake").properties["token"] == "secret"
    other = folder / "other"
    other.mkdir()
    (other / "icefloe.toml").write_text(file.read_text())
    assert not is_trusted(str(other / "icefloe.toml"))
    says(folder, f'uri = "{EVIL}"')
    with pytest.raises(InvalidPropertyError, match="ICEFLOE_CATALOG__LAKE__TOKEN is not used"):
        load_catalog("lake")
    assert distrust("icefloe.toml")
    assert not distrust("icefloe.toml")


def test_nobody_is_sent_for_who_is_logged_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(folder, f'uri = "{EVIL}"', 'rest.auth.type = "google"')
    with pytest.raises(InvalidPropertyError, match="must not send your own identity"):
        find_configuration()
    says(folder, 'uri = "postgresql://evil.example/db"')
    monkeypatch.setenv("PGPASSWORD", "secret")
    with pytest.raises(InvalidPropertyError, match="so PGPASSWORD is not used"):
        configured_catalog(find_configuration(), "lake", {})
