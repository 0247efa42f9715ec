"""The rewrite of data files, under its names; `Maintenance` offers it beside the others."""

from collections.abc import Mapping
from typing import Literal, overload

from icefloe.expressions import Expression
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.maintained_table import OfTable
from icefloe.maintenance.options import OptionValue
from icefloe.maintenance.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite
from icefloe.maintenance.rewrite.result import RewriteResult
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.progress import Listener


class RewriteMaintenance(OfTable):
    """What can be done about the data files of one table."""

    @overload
    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: Literal[False] = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewriteResult: ...

    @overload
    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: Literal[True],
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewritePlan: ...

    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewriteResult | RewritePlan:
        """Rewrite data files that are too small, too large or full of deleted rows; no row changes, and none its id.

        Groups that lose to another commit are planned anew on the newest state and tried again, three times in all.

        Args:
            strategy: `"binpack"`, which leaves rows in their order, or `"sort"`.
            sort_order: what to sort by, such as `"ts DESC NULLS LAST, bucket(16, id)"`; by default the table's order.
            where: only files that may hold a matching row, as SQL text or as an expression; they are rewritten whole.
            options: options by Java's names, such as `{"min-input-files": "2"}` (docs/maintenance.md).
            branch: the branch to change, in place of `main`.
            engine: None for this process, `"spark"` or a Spark session.
            dry_run: return the plan, which can be shown, saved and run, and do nothing.
            progress: called with how far it is.
            snapshot_properties: properties for the summaries of the new snapshots.
            **keywords: options as keywords, such as `min_input_files=2`.
        """
        texts = RewriteRequest.options_of(strategy, sort_order, options, keywords)
        request = RewriteRequest(self._table, strategy, sort_order, where, texts, branch, snapshot_properties)
        plan = plan_rewrite(request)
        return plan if dry_run else run_rewrite(plan, engine_of(engine), progress, request.again)

    compact = rewrite_data_files
