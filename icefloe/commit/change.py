"""What every operation of this room is: a value that turns a table's metadata into updates and requirements."""

from dataclasses import dataclass
from typing import Protocol

from icefloe.commit.workbench import Workbench
from icefloe.metadata import TableMetadata, requirements as req, updates as up


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a change does to the metadata that it was prepared on.

    `requirements` are those that the updates do not imply by themselves (see `metadata.requirements_for`).
    """

    updates: tuple[up.TableUpdate, ...] = ()
    requirements: tuple[req.TableRequirement, ...] = ()


class Change(Protocol):
    """An intention. It may be prepared many times, on newer and newer metadata: once for each attempt to commit it."""

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """What to do to this metadata; files that are needed are written."""

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that it has made up for itself; the same in every attempt."""
