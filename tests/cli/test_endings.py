"""How command lines end: the exit code follows the tree of errors, and errors are text or JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from icefloe import errors
from icefloe.cli import exits
from icefloe.cli.main import main
from tests.cli.conftest import Run


def all_errors(kind: type[errors.IcefloeError] = errors.IcefloeError) -> Iterator[type[errors.IcefloeError]]:
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield inner
            yield from all_errors(inner)


def made(kind: type[errors.IcefloeError]) -> errors.IcefloeError:
    two = issubclass(kind, errors.StorageError | errors.CorruptFileError)
    return kind("s3://bucket/file", "it is broken") if two else kind("it is broken")


@pytest.mark.parametrize("kind", list(all_errors()), ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_of_its_kind(kind: type[errors.IcefloeError]) -> None:
    code = exits.exit_code(made(kind))
    assert code != exits.BUG
    said = exits.problem(made(kind))["error"]
    assert isinstance(said, dict)
    assert said["code"] == code
    assert said["retryable"] is (code in (exits.LOST_RACE, exits.STORAGE))


def test_what_the_codes_mean() -> None:
    assert exits.exit_code(errors.CommitStateUnknown("?")) == 6
    assert exits.exit_code(errors.CommitFailed("?")) == exits.exit_code(errors.StaleBaseError("?")) == 5
    assert exits.exit_code(errors.NoSuchTableError("?")) == 3
    assert exits.exit_code(errors.ForbiddenError("?")) == exits.exit_code(errors.TableAlreadyExistsError("?")) == 4
    assert exits.exit_code(errors.LocationNotFoundError("a", "b")) == 7
    assert exits.exit_code(errors.InvalidExpressionError("?")) == 2
    assert exits.exit_code(RuntimeError("?")) == 70


class Failing:
    """Stands for a catalog whose service fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def list_namespaces(self, parent: object) -> object:
        raise self.error

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.CommitStateUnknown("was it?"), 6),
        (errors.CommitFailed("lost"), 5),
        (errors.ServiceUnavailableError("down"), 7),
        (errors.NotAuthorizedError("who?"), 4),
        (KeyError("oops"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_a_failing_catalog(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    monkeypatch.setattr("icefloe.cli.invocation.Invocation._load", lambda self, name: Failing(error))
    assert main(["list"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    if code in (5, 6):
        assert "Hint: " in said.err
    if code != 130:
        assert main(["list", "-o", "json"]) == code
        document = json.loads(capsys.readouterr().err)
        assert document["error"].keys() == {"code", "type", "message", "hint", "retryable"}
        assert document["error"]["code"] == code


def test_usage_errors_are_said_as_asked(lake: Path, run: Run) -> None:
    assert "No such command 'lits'. Did you mean 'list'?" in run("lits", code=2).err
    assert "No such option: --nope" in run("list", "--nope", code=2).err
    assert "Missing argument" in run("describe", code=2).err
    assert "'xml' is not one of text, json" in run("list", "-o", "xml", code=2).err
    document = json.loads(run("-o", "json", "describe", code=2).err)
    assert document["error"]["code"] == 2
    assert document["error"]["retryable"] is False
    assert json.loads(run("list", "--output=json", "--nope", code=2).err)["error"]["code"] == 2
    assert "not of the form KEY=VALUE" in run("-p", "nope", "list", code=2).err


def test_secrets_stay_out_of_errors(lake: Path, run: Run) -> None:
    said = run("--uri", "postgresql://ann:hunter22@127.0.0.1:1/db", "-c", "x", "list", code=7)
    assert "hunter22" not in said.err + said.out


def test_without_arguments_there_is_help(run: Run) -> None:
    assert run().out.startswith("Usage: icefloe [OPTIONS] COMMAND")
    assert "Show the configuration" in run("config", "--help").out
    assert run("--version").out == run("version").out


def test_quiet_and_late_options(lake: Path, run: Run) -> None:
    assert run("config", "show").err.startswith("file: icefloe.toml (not trusted); catalog in use: icefloe")
    assert run("config", "show", "--quiet").err == ""
    assert run("-o", "csv", "list", "-o", "json").result() == [{"name": "shop", "kind": "namespace"}]


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    from icefloe.cli.app import load_command
    from icefloe.cli.commands import COMMANDS

    for name, command in COMMANDS.items():
        loaded = load_command(name, command)
        assert (loaded.help or "").splitlines()[0] == command.help, name
