"""How a commit ended: it happened, it certainly did not, or nobody knows. Three types, so that none is taken for another."""

from dataclasses import dataclass

from icefloe import errors
from icefloe.commit.committer import TableState


@dataclass(frozen=True, slots=True)
class Committed:
    """It happened; `state` holds it, and maybe later commits of others. `base` is what it was prepared on."""

    state: TableState
    snapshot_ids: tuple[int, ...] = ()
    attempts: int = 1
    base: TableState | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """It certainly did not happen. `cleaned` says whether the files that were written for it are deleted."""

    error: Exception
    attempts: int = 1
    cleaned: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened or not, now or a moment later; every file written for it is kept."""

    error: Exception
    attempts: int = 1


Outcome = Committed | Rejected | Unknown


def result_of(outcome: Outcome, name: str) -> Committed:
    """The outcome if the commit happened, else its error."""
    match outcome:
        case Committed():
            return outcome
        case Rejected(error):
            raise error
        case Unknown(errors.CommitStateUnknown() as error):
            raise error
        case Unknown(error):
            raise errors.CommitStateUnknown(
                f"it is unknown whether the commit to {name} succeeded: {error}; its files are kept; check the table"
            ) from error
