"""Decides what a configuration file of the working directory may do: it came with the folder, from whoever wrote that.

Such a file names no code to run, reads neither variables nor other files, and gets no credentials to send: neither those
that the environment has for a catalog of the same name, nor an identity of the user's own. A file that the user trusts, or
names, does all of it. Trust is in one file of the user's, as the hash of what was trusted and its path: a file that
changed is not trusted any more.
"""

import hashlib
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path

from icefloe.catalog.redaction import is_shown
from icefloe.errors import InvalidPropertyError

_CODE = re.compile(r"(.*[.-])?(impl|class)|py-.*|openlineage\.transport\..*")
"""OpenLineage's transports can be named by their classes."""
_KINDS_OF_AUTH = ("rest.auth.type", "rest.auth.sigv4.delegate-auth-type", "auth.type")
_OWN_IDENTITIES = ("google", "entra")
"""Kinds of authentication that send a token of whoever is logged in."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_GUIDES_NO_SECRET = re.compile(
    r"""type | warehouse | prefix | scope | audience | resource | namespace-separator | (?:s3|client|rest\.signing)[.-]region
      | rest\.signing-name | s3\.path-style-access | s3\.force-virtual-addressing | unique-table-location
      | (?:snapshot-loading|scan-planning)-mode | rest-page-size | view-endpoints-supported
      | .*-timeout(?:-ms)? | .*max-retries | (?:table|view)-(?:default|override)\..+""",
    re.VERBOSE,
)
"""Properties that cannot make a secret go to another place than without them."""
_LIST = "trusted"


def is_trusted(file_path: str) -> bool:
    """Whether the user trusts the file as it is now."""
    return _line(file_path) in _lines()


def trust(file_path: str) -> None:
    """Trust a file as it is now."""
    _write([*_others(file_path), _line(file_path)])


def distrust(file_path: str) -> bool:
    """Trust a file no longer; whether it was, in any state."""
    kept = _others(file_path)
    was_there = len(kept) < len(_lines())
    if was_there:
        _write(kept)
    return was_there


def check_harmless(file_path: str, catalog: str, table: Mapping[str, str], variable_of: Mapping[str, str]) -> None:
    """Fail if a file that nobody trusts names code, reads variables or files, or sends who the user is.

    `variable_of` has the variables that would set the same properties.
    """
    for key, value in table.items():
        where = f"{file_path} is in the working directory, so it must not"
        if _CODE.fullmatch(key.lower()) or (key.lower() in _KINDS_OF_AUTH and "." in value):
            raise InvalidPropertyError(
                f"{where} name code to run, but {key!r} of catalog {catalog!r} does; {ways(file_path)}"
            )
        if key.lower() in _KINDS_OF_AUTH and value.lower() in _OWN_IDENTITIES:
            raise InvalidPropertyError(
                f"{where} send your own identity to a server, but {key!r} of catalog {catalog!r} is {value!r}; {ways(file_path)}"
            )
        if _REFERENCE.search(value):
            raise InvalidPropertyError(
                f"{where} read variables or files, but {key!r} of catalog {catalog!r} does;"
                f" set {variable_of[key]}, or {ways(file_path)}"
            )


def check_secrets_stay(
    file_path: str, catalog: str, table: Mapping[str, str], environment: Mapping[str, str], given: frozenset[str]
) -> None:
    """Fail if a file that nobody trusts says where secrets of the environment go.

    `table` is what the file says of a catalog, `environment` has the variables by property, `given` are properties that
    arguments set.
    """
    secrets = sorted(variable for key, variable in environment.items() if not is_shown(key) and key not in given)
    if "PGPASSWORD" in os.environ and "postgres" in table.get("uri", "") and "uri" not in environment.keys() | given:
        # Its drivers send it wherever a URI leads.
        secrets.append("PGPASSWORD")
    guides = sorted(
        key
        for key in table.keys() - environment.keys() - given
        if not _GUIDES_NO_SECRET.fullmatch(key) and not _is_local(key, table[key])
    )
    if secrets and guides:
        raise InvalidPropertyError(
            f"{file_path} is in the working directory, so {secrets[0]} is not used for its settings of catalog {catalog!r}"
            f" ({', '.join(guides)}): the file could send it anywhere; set these as environment variables as well, or {ways(file_path)}"
        )


def ways(file_path: str) -> str:
    """How a file of the working directory comes to be trusted."""
    return f"if you know the file, trust it: icefloe config trust {file_path}, or name it: --config {file_path}"


def _is_local(key: str, value: str) -> bool:
    return key == "uri" and value.startswith("sqlite:")


# -- the list


def _list_file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "icefloe" / _LIST


def _line(file_path: str) -> str:
    path = Path(file_path).expanduser().resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidPropertyError(f"{file_path} cannot be read: {error}") from error
    return f"{digest}  {str(path)!r}"


def _lines() -> list[str]:
    try:
        return _list_file().read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPropertyError(f"{_list_file()} cannot be read: {error}") from error


def _others(file_path: str) -> list[str]:
    path = repr(str(Path(file_path).expanduser().resolve()))
    return [line for line in _lines() if line.partition("  ")[2] != path]


def _write(lines: list[str]) -> None:
    file = _list_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    beside.touch(mode=0o600)
    beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    beside.replace(file)
