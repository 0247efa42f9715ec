"""Decides where catalogs are configured: one file of several places, then the environment, then arguments.

The file is the first of: the one that is named (`--config`, `ICEFLOE_CONFIG`), `icefloe.toml` in the working directory,
`icefloe/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`, `~/.icefloe.toml`, and PyIceberg's `.pyiceberg.yaml` in
`$PYICEBERG_HOME`, the home folder or the working directory. Files are never merged.

It has one table for each catalog, `[catalog.lake]`; tables inside of it stand for dots in keys, so that
`s3.endpoint = "..."` is the property `s3.endpoint`. A variable is `ICEFLOE_CATALOG__<NAME>__<KEY>`, in which two
underscores in the key stand for a dot and one for a dash: `ICEFLOE_CATALOG__LAKE__S3__ACCESS_KEY_ID` is
`s3.access-key-id` of the catalog `lake`; PyIceberg's `PYICEBERG_CATALOG__...` say the same, and are weaker. Names of
catalogs are compared without case, a dash as an underscore. What comes later wins, property by property.

A file in the working directory comes with the folder, from whoever wrote that: what it may not do before the user
trusts it is in `trust`.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from icefloe.catalog.trust import check_harmless, check_secrets_stay, is_trusted
from icefloe.errors import InvalidPropertyError, NotInstalledError

HOME_FILE = "~/.icefloe.toml"
PROJECT_FILE = "icefloe.toml"
FILE_VARIABLE = "ICEFLOE_CONFIG"
_PYICEBERG_FILE = ".pyiceberg.yaml"
_PYICEBERG = "PYICEBERG_CATALOG__"
_OWN = "ICEFLOE_CATALOG__"
_DEFAULT_VARIABLES = ("ICEFLOE_DEFAULT_CATALOG", "PYICEBERG_DEFAULT_CATALOG")
_DEFAULT_CATALOG = "default-catalog"
_ARGUMENT = "an argument"
_REFERENCE = re.compile(r"\$(\$(?=\{)|\{([^}]*)\})")


@dataclass(frozen=True, slots=True)
class Setting:
    """A property of a catalog, and where it comes from."""

    value: str
    source: str


@dataclass(frozen=True)
class Configuration:
    """What one file says; `path` is None if there is no file."""

    path: str | None = None
    default_catalog: str | None = None
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    is_foreign: bool = False
    """Whether it came with the working directory, and the user has not said that it can be trusted."""

    def properties(self, name: str, arguments: Mapping[str, object] | None = None) -> dict[str, str]:
        """All properties of a catalog that is about to be used."""
        settings = self.settings(name, arguments)
        if self.is_foreign:
            variables = {key: setting.source for key, setting in _from_environment(name).items()}
            given = frozenset(key for key, setting in settings.items() if setting.source == _ARGUMENT)
            check_secrets_stay(str(self.path), name, self.of(name), variables, given)
        return {key: setting.value for key, setting in settings.items()}

    def settings(self, name: str, arguments: Mapping[str, object] | None = None) -> dict[str, Setting]:
        """All properties of a catalog, with where each comes from."""
        known = {key: Setting(value, str(self.path)) for key, value in self.of(name).items()}
        known |= _from_environment(name)
        for key, value in (arguments or {}).items():
            if (text := property_text(key, value)) is not None:
                known[key] = Setting(text, _ARGUMENT)
        return known

    def of(self, name: str) -> Mapping[str, str]:
        """What the file says of a catalog."""
        return next((table for known, table in self.catalogs.items() if same_name(known, name)), {})

    def names(self) -> list[str]:
        """The catalogs that file or environment know, in the order of their names."""
        known = dict.fromkeys(self.catalogs)
        for name in _names_in_environment():
            if not any(same_name(name, other) for other in known):
                known[name] = None
        return sorted(known)


def find_configuration(path: str | os.PathLike[str] | None = None) -> Configuration:
    """The configuration that counts here: the file of that path, or the first of the usual places."""
    named = path or os.environ.get(FILE_VARIABLE)
    if named is not None:
        if not os.path.isfile(os.path.expanduser(named)):
            raise InvalidPropertyError(f"the configuration file {os.fspath(named)!r} does not exist")
        return _read(os.fspath(named), is_foreign=False, is_near=True)
    for file_path, is_project in _places():
        if os.path.isfile(os.path.expanduser(file_path)):
            is_foreign = is_project and not is_trusted(file_path)
            return _read(file_path, is_foreign, is_near=is_project)
    return Configuration(default_catalog=_default_of_environment())


def _places() -> Iterator[tuple[str, bool]]:
    """Where a file may be, and whether it comes with the working directory."""
    yield PROJECT_FILE, True
    yield os.path.join(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "icefloe", "config.toml"), False
    yield HOME_FILE, False
    if home := os.environ.get("PYICEBERG_HOME"):
        yield os.path.join(home, _PYICEBERG_FILE), False
    yield f"~/{_PYICEBERG_FILE}", False
    yield _PYICEBERG_FILE, True


def _read(file_path: str, is_foreign: bool, is_near: bool) -> Configuration:
    content = _yaml(file_path) if file_path.endswith((".yaml", ".yml")) else read_toml(file_path)
    tables = {
        name: _checked(file_path, name, dict(flat(table, f"catalog.{name}")), is_foreign)
        for name, table in catalog_tables(content, file_path).items()
    }
    if is_near:
        folder = Path(os.path.expanduser(file_path)).absolute().parent
        tables = {name: _beside(table, folder) for name, table in tables.items()}
    default = content.get(_DEFAULT_CATALOG)
    if default is not None and not isinstance(default, str):
        raise InvalidPropertyError(f"{file_path}: {_DEFAULT_CATALOG} is {default!r}; it must be the name of a catalog")
    return Configuration(file_path, _default_of_environment() or default, tables, is_foreign)


def read_toml(file_path: str) -> Mapping[str, object]:
    """The content of a TOML file."""
    try:
        with open(os.path.expanduser(file_path), "rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidPropertyError(f"{file_path} cannot be read: {error}") from error


def _yaml(file_path: str) -> Mapping[str, object]:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise NotInstalledError(
            f"{file_path} is a YAML file: run `pip install pyyaml` to read it, or write the same settings to {PROJECT_FILE}"
        ) from error
    try:
        with open(os.path.expanduser(file_path), encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidPropertyError(f"{file_path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise InvalidPropertyError(f"{file_path} is not a mapping with the key `catalog`")
    return content


def catalog_tables(content: Mapping[str, object], file_path: str) -> Mapping[str, Mapping[str, object]]:
    """The tables of catalogs in a file, by name."""
    tables = content.get("catalog", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidPropertyError(f"{file_path}: catalogs must be tables such as [catalog.lake]")
    return tables


def flat(table: Mapping[str, object], path: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The properties in a table, those of tables inside of it with dots in their keys."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, path, f"{prefix}{key}.")
        elif (text := property_text(f"{path}.{prefix}{key}", value)) is not None:
            yield prefix + str(key), text


def _checked(file_path: str, catalog: str, table: dict[str, str], is_foreign: bool) -> dict[str, str]:
    """The table with what it refers to in place; of a file that nobody trusts, an error if it does."""
    if is_foreign:
        check_harmless(file_path, catalog, table, {key: variable_of(catalog, key) for key in table})
        return table
    return {key: _resolved(f"{file_path}: catalog.{catalog}.{key}", value) for key, value in table.items()}


def _resolved(where: str, value: str) -> str:
    """The value with `${NAME}`, `${NAME:-default}` and `${file:PATH}` replaced by what they stand for."""

    def replaced(match: re.Match[str]) -> str:
        if match[2] is None:
            return "$"
        if match[2].startswith("file:"):
            try:
                return Path(match[2].removeprefix("file:")).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidPropertyError(f"{where} refers to a file that cannot be read: {error}") from error
        name, separator, default = match[2].partition(":-")
        if name not in os.environ and not separator:
            raise InvalidPropertyError(f"{where} refers to the variable {name!r}, which is not set")
        return os.environ.get(name, default)

    return _REFERENCE.sub(replaced, value)


def _beside(table: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Relative paths of a file that is named, or of the project, are relative to the file."""
    changed = dict(table)
    warehouse, uri = table.get("warehouse", ""), table.get("uri", "")
    is_path = warehouse.strip() and ":" not in warehouse and table.get("type", "").lower() != "rest"
    if is_path and not uri.startswith(("http:", "https:")):
        changed["warehouse"] = str(folder / Path(warehouse).expanduser())
    if uri.startswith("sqlite:///") and not uri.startswith(("sqlite:////", "sqlite:///:")):
        changed["uri"] = f"sqlite:///{folder / uri.removeprefix('sqlite:///')}"
    return changed


# -- the environment


def variable_of(catalog: str, key: str) -> str:
    """The variable that sets a property of a catalog."""
    return f"{_OWN}{catalog}__{key}".replace("-", "_").replace(".", "__").upper()


def _variables(prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for variable, value in os.environ.items():
        if variable.upper().startswith(prefix):
            catalog, separator, key = variable[len(prefix) :].partition("__")
            if separator and key:
                yield variable, catalog, key.lower().replace("__", ".").replace("_", "-"), value


def _from_environment(name: str) -> dict[str, Setting]:
    return {
        key: Setting(value, variable)
        for prefix in (_PYICEBERG, _OWN)
        for variable, catalog, key, value in _variables(prefix)
        if same_name(catalog, name)
    }


def _names_in_environment() -> list[str]:
    return [catalog.lower() for prefix in (_OWN, _PYICEBERG) for _, catalog, _, _ in _variables(prefix)]


def _default_of_environment() -> str | None:
    return next((os.environ[name] for name in _DEFAULT_VARIABLES if os.environ.get(name)), None)


def same_name(one: str, other: str) -> bool:
    """Whether two names are of one catalog."""
    return one.lower().replace("-", "_") == other.lower().replace("-", "_")


def property_text(key: str, value: object) -> str | None:
    """The value of a property as a text; None if it is not set."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case os.PathLike():
            return str(os.fspath(value))
        case _:
            raise InvalidPropertyError(
                f"property {key!r} has a value of type {type(value).__name__}; expected a string, number or boolean"
            )
