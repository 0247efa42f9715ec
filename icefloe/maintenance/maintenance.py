"""The procedures that keep a table healthy, under their names: `table.maintenance.expire_snapshots(...)`."""

import datetime as dt
from collections.abc import Iterable

from icefloe.commit.expire import Expire
from icefloe.maintenance.expire_snapshots import ExpiredFiles, expire_snapshots
from icefloe.maintenance.maintained import MaintainedTable
from icefloe.planning.selection import milliseconds


class Maintenance:
    """What can be done for the health of one table; every call is its own commit."""

    def __init__(self, table: MaintainedTable) -> None:
        self._table = table

    def expire_snapshots(
        self,
        older_than: int | dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        *,
        delete_files: bool = True,
        clean_expired_metadata: bool = False,
    ) -> ExpiredFiles:
        """Drop snapshots older than a time (milliseconds, or a datetime with a zone) and delete the files only they needed.

        Without a time the table's own retention decides (`history.expire.max-snapshot-age-ms` and its siblings). Snapshots
        that a branch or tag keeps stay, and so do the last `retain_last` of each branch. `clean_expired_metadata` also
        drops schemas and partition specs that no remaining snapshot needs.
        """
        chosen = Expire(None if older_than is None else milliseconds(older_than), retain_last, tuple(snapshot_ids))
        return expire_snapshots(self._table, chosen, delete_files=delete_files, clean_metadata=clean_expired_metadata)
