"""Exit codes by class of error, and errors as text or JSON.

0    success
1    success with findings or differences (doctor, verify, diff), or a partially completed rewrite
2    usage error: arguments, names, settings, a missing package
3    not found: table, namespace, column, snapshot, branch
4    not allowed: by the service, by the state of the table, or for lack of confirmation
5    commit conflict: nothing changed, try again
6    outcome unknown: check the table before trying again
7    storage or network failure, or corrupt files
70   internal error (a bug in icefloe)
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
    UNKNOWN: "the change may or may not have been committed: check `icefloe log` before running the command again",
    STORAGE: "the command itself is probably fine; try running it again",
    BUG: "this is a bug in icefloe; run with --verbose for a traceback",
}


class RefusedError(errors.IcefloeError):
    """The user did not confirm the operation."""


class OutputClosedError(Exception):
    """Standard output was closed by its reader."""


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, RefusedError):
        return NOT_ALLOWED
    return next((code for kind, code in _CODES if isinstance(error, kind)), BUG)


def problem(error: BaseException, message: str | None = None, code: int | None = None) -> dict[str, object]:
    """Return an error as a JSON object."""
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
    """Return a hint on what to do about an exit code."""
    return _HINTS.get(code)
