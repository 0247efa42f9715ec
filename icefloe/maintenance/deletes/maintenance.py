"""The procedures about delete files, under their names; `Maintenance` offers them beside the others."""

from collections.abc import Mapping
from typing import Literal, overload

from icefloe.expressions import Expression
from icefloe.maintenance.deletes.dangling import (
    RemovalPlan,
    RemovedDeletes,
    plan_dangling_deletes,
    remove_dangling_deletes,
)
from icefloe.maintenance.deletes.equality import (
    ConversionPlan,
    ConvertedDeletes,
    convert_equality_deletes,
    plan_equality_conversion,
)
from icefloe.maintenance.deletes.options import CONVERSION, POSITION_DELETES
from icefloe.maintenance.deletes.position import (
    PositionDeletesPlan,
    RewrittenPositionDeletes,
    plan_position_deletes,
    rewrite_position_delete_files,
)
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.maintained_table import OfTable
from icefloe.maintenance.options import OptionValue, options_of
from icefloe.progress import Listener, listener_or_bar


class DeleteMaintenance(OfTable):
    """What can be done about the delete files of one table."""

    @overload
    def rewrite_position_delete_files(
        self,
        options: Mapping[str, OptionValue] | None = None,
        where: str | Expression | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: Literal[False] = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewrittenPositionDeletes: ...

    @overload
    def rewrite_position_delete_files(
        self,
        options: Mapping[str, OptionValue] | None = None,
        where: str | Expression | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: Literal[True],
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> PositionDeletesPlan: ...

    def rewrite_position_delete_files(
        self,
        options: Mapping[str, OptionValue] | None = None,
        where: str | Expression | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewrittenPositionDeletes | PositionDeletesPlan:
        """Write position deletes anew: fewer files, vectors in place of files, Puffin files without dead vectors.

        Args:
            options: options by Java's names, such as `min-input-files`; see docs/maintenance.md.
            where: a condition; only deletes of partitions that may hold rows of it are rewritten.
            branch: the branch to work on, `main` by default.
            engine: what reads and writes: None is this process, or a Spark session.
            dry_run: return a plan, and change nothing.
            progress: called for each step.
            snapshot_properties: what the summaries of the new snapshots say besides.
            **keywords: options with `_` in place of `-` and `.`.
        """
        known = options_of("rewrite_position_delete_files", POSITION_DELETES, options, keywords)
        work = plan_position_deletes if dry_run else rewrite_position_delete_files
        progress = listener_or_bar(progress)
        request = DeletesRequest(self._table, engine_of(engine), known, where, branch, progress, snapshot_properties)
        return work(request)

    @overload
    def convert_equality_deletes(
        self,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: Literal[False] = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> ConvertedDeletes: ...

    @overload
    def convert_equality_deletes(
        self,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: Literal[True],
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> ConversionPlan: ...

    def convert_equality_deletes(
        self,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        *,
        branch: str | None = None,
        engine: object | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> ConvertedDeletes | ConversionPlan:
        """Delete rows by position that equality deletes delete, and remove the equality deletes.

        Args:
            where: a condition; only equality deletes of partitions that may hold rows of it are converted.
            options: options by name, such as `partial-progress.enabled`; see docs/maintenance.md.
            branch: the branch to work on, `main` by default.
            engine: what compares keys: None is this process, or a Spark session.
            dry_run: return a plan, and change nothing.
            progress: called for each step.
            snapshot_properties: what the summaries of the new snapshots say besides.
            **keywords: options with `_` in place of `-` and `.`.
        """
        known = options_of("convert_equality_deletes", CONVERSION, options, keywords)
        work = plan_equality_conversion if dry_run else convert_equality_deletes
        progress = listener_or_bar(progress)
        request = DeletesRequest(self._table, engine_of(engine), known, where, branch, progress, snapshot_properties)
        return work(request)

    @overload
    def remove_dangling_deletes(
        self,
        branch: str | None = None,
        *,
        dry_run: Literal[False] = False,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RemovedDeletes: ...

    @overload
    def remove_dangling_deletes(
        self,
        branch: str | None = None,
        *,
        dry_run: Literal[True],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RemovalPlan: ...

    def remove_dangling_deletes(
        self,
        branch: str | None = None,
        *,
        dry_run: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RemovedDeletes | RemovalPlan:
        """Remove delete files that delete no row of any live data file; only manifests are read.

        Args:
            branch: the branch to look at, `main` by default.
            dry_run: return what would be removed, and remove nothing.
            snapshot_properties: what the summary of the new snapshot says besides.
        """
        work = plan_dangling_deletes if dry_run else remove_dangling_deletes
        return work(self._table, branch, snapshot_properties=snapshot_properties)
