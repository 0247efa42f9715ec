"""Decides with which code a command ends, by the tree of errors, and what is said of an error as text or JSON.

0    done
1    done, with findings or differences (doctor, verify, diff), or a rewrite that is done in part
2    wrong use: arguments, names, settings, a package that is missing
3    no such thing: table, namespace, column, snapshot, branch
4    not allowed: by the service, by the state of the table, or because nobody confirmed it
5    lost a race: nothing changed, try again
6    the outcome is unknown: look at the table before you try again
7    storage or network failed, or files are broken
70   a fault of icefloe
130  interrupted
"""

from icefloe import errors

DONE, FINDINGS, USAGE, NO_SUCH_THING, NOT_ALLOWED, LOST_RACE, UNKNOWN, STORAGE = range(8)
BUG = 70
INTERRUPTED = 130

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.CommitStateUnknown, UNKNOWN),
    (errors.CommitFailed, LOST_RACE),
    (errors.ValidationError, LOST_RACE),
    (errors.IncompleteRewriteError, FINDINGS),
    (errors.NoSuchObjectError, NO_SUCH_THING),
    (errors.StateError, NOT_ALLOWED),
    (errors.NotAuthorizedError, NOT_ALLOWED),
    (errors.ForbiddenError, NOT_ALLOWED),
    (errors.InvalidInputError, USAGE),
    (errors.NotInstalledError, USAGE),
    (errors.StorageError, STORAGE),
    (errors.ServiceUnavailableError, STORAGE),
    (errors.CorruptFileError, STORAGE),
    (errors.CorruptTableError, STORAGE),
)
_HINTS = {
    LOST_RACE: "nothing changed; run the command again",
    UNKNOWN: "the change may or may not have happened: look at `icefloe log` before you run it again",
    STORAGE: "nothing is known to be wrong with the command itself; it may be run again",
    BUG: "this is a fault of icefloe; --verbose shows where",
}


class RefusedError(errors.IcefloeError):
    """What is not done without the user's word."""


class OutputClosedError(Exception):
    """Nobody reads standard output any more."""


def exit_code(error: BaseException) -> int:
    """The code that an error ends a command with."""
    if isinstance(error, RefusedError):
        return NOT_ALLOWED
    return next((code for kind, code in _CODES if isinstance(error, kind)), BUG)


def problem(error: BaseException, message: str | None = None, code: int | None = None) -> dict[str, object]:
    """An error as the object that is printed as JSON."""
    number = exit_code(error) if code is None else code
    text = message or str(error) or type(error).__name__
    return {
        "error": {
            "code": number,
            "type": type(error).__name__,
            "message": errors.without_credentials(text),
            "hint": _HINTS.get(number),
            "retryable": number in (LOST_RACE, STORAGE),
        }
    }


def hint_of(code: int) -> str | None:
    """What a user can do about a code."""
    return _HINTS.get(code)
