"""How a commit can end: it happened, it certainly did not, or nobody knows; three types, so that none is taken for another."""

from dataclasses import dataclass

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
