"""The expiry that is put together call by call, as in PyIceberg."""

import datetime as dt
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from icefloe.commit import Expire
from icefloe.maintenance.expiry.expired_files import ExpiredFiles
from icefloe.planning import milliseconds


class ExpireSnapshots:
    """Snapshots to drop, chosen one after the other; nothing happens before `commit`, or the end of a `with` block.

    Unlike PyIceberg, `commit` deletes the files, too, that only these snapshots needed.
    """

    def __init__(self, expire: Callable[[Expire], ExpiredFiles]) -> None:
        self._expire = expire
        self._ids: tuple[int, ...] = ()
        self._older_than_ms: int | None = None
        self._retain_last: int | None = None

    def by_id(self, snapshot_id: int) -> Self:
        """Drop this snapshot."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Drop these snapshots."""
        self._ids += tuple(snapshot_ids)
        return self

    def older_than(self, moment: int | dt.datetime) -> Self:
        """Drop snapshots older than a time, in milliseconds or as a datetime with a zone."""
        self._older_than_ms = milliseconds(moment)
        return self

    def retain_last(self, count: int) -> Self:
        """Keep this many snapshots of each branch in any case."""
        self._retain_last = count
        return self

    def commit(self) -> ExpiredFiles:
        """Do it; nothing if nothing was chosen."""
        if self._older_than_ms is None and self._retain_last is None and not self._ids:
            return ExpiredFiles()
        return self._expire(Expire(self._older_than_ms, self._retain_last, self._ids))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
