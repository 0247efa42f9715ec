"""Maintenance pages: health with recommended actions, storage, verification, and background jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from icefloe import errors, properties as props
from icefloe.maintenance import REMEDIES, Maintenance, MaintenancePlan, Remedy, Step, StorageLayout
from icefloe.progress import Listener
from icefloe.shown import size
from icefloe.ui.asking import Page, TablePage
from icefloe.ui.charts import Slice, share_chart
from icefloe.ui.figures import Sign
from icefloe.ui.jobs import Job
from icefloe.ui.visitors import TABLE
from icefloe.verification import Level

_WORST = 20
_FINDINGS = 200
_LEVELS = {
    "metadata": "metadata, manifest lists and manifests",
    "files": "also that every file exists with the right length",
    "footers": "also the footers of files",
    "data": "also every row",
}


@dataclass(frozen=True, slots=True)
class Procedure:
    """A maintenance step, run or only planned with `dry_run`."""

    run: Callable[[Maintenance, Listener], object]
    plan: Callable[[Maintenance], object]


PROCEDURES: Mapping[Step, Procedure] = {
    Step.COMPACT: Procedure(
        lambda table, listener: table.rewrite_data_files(progress=listener),
        lambda table: table.rewrite_data_files(dry_run=True),
    ),
    Step.SORT: Procedure(
        lambda table, listener: table.rewrite_data_files("sort", progress=listener),
        lambda table: table.rewrite_data_files("sort", dry_run=True),
    ),
    Step.CONVERT: Procedure(
        lambda table, listener: table.convert_equality_deletes(progress=listener),
        lambda table: table.convert_equality_deletes(dry_run=True),
    ),
    Step.POSITION_DELETES: Procedure(
        lambda table, listener: table.rewrite_position_delete_files(progress=listener),
        lambda table: table.rewrite_position_delete_files(dry_run=True),
    ),
    Step.DANGLING_DELETES: Procedure(
        lambda table, _: table.remove_dangling_deletes(), lambda table: table.remove_dangling_deletes(dry_run=True)
    ),
    Step.MANIFESTS: Procedure(
        lambda table, listener: table.rewrite_manifests(progress=listener),
        lambda table: table.rewrite_manifests(dry_run=True),
    ),
    Step.EXPIRE: Procedure(
        lambda table, listener: table.expire_snapshots(by_retention=True, progress=listener),
        lambda table: table.expire_snapshots(by_retention=True, dry_run=True),
    ),
    Step.STATISTICS: Procedure(
        lambda table, listener: table.compute_table_stats(progress=listener),
        lambda _: "compute and commit a statistics file for all primitive columns",
    ),
}


def health(page: Page) -> Response:
    """Show the health of a table, with a command for each finding."""
    subject = TablePage.of(page, "health")
    job = subject.page.site.jobs.ask(
        _health_key(subject), "Reading manifests", (subject.catalog, subject.identifier), _health(subject)
    )

    def make(plan: MaintenancePlan) -> dict[str, Any]:
        findings = [(each, REMEDIES[each.step]) for each in plan.decisions if each.step in REMEDIES]
        state = plan.health
        worst = sorted(state.partitions, key=lambda each: (each.small_files, each.data_files), reverse=True)[:_WORST]
        return {
            "due": [(each, remedy, remedy.command(subject.text)) for each, remedy in findings if each.is_due],
            "fine": [(each, remedy) for each, remedy in findings if not each.is_due],
            "state": state,
            "worst": [each for each in worst if each.partition],
            "total": state.total,
        }

    return subject.render_job("health.html", job, make)


def _health_key(subject: TablePage) -> tuple[object, ...]:
    return ("health", subject.catalog, subject.identifier, *subject.state)


def known_sign(subject: TablePage) -> Sign | None:
    """Return the health of the table's current state, if it was checked."""
    job = subject.page.site.jobs.peek(_health_key(subject))
    if job is None or job.result is None:
        return None
    due = [REMEDIES[each.step].title.lower() for each in job.result.decisions if each.is_due and each.step in REMEDIES]
    return Sign("good" if not due else "fair" if len(due) == 1 else "poor", due or ["no maintenance needed"])


def _health(subject: TablePage) -> Callable[[Listener], MaintenancePlan]:
    # Health can also be checked for tables on which automatic maintenance is disabled.
    policy = {props.MAINTENANCE_ENABLED.key: True}
    return lambda listener: subject.table.maintenance.maintain(policy, dry_run=True, progress=listener)


def check_again(page: Page) -> Response:
    """Discard the result of the last health check."""
    subject = TablePage.of(page, "health")
    page.site.jobs.forget(_health_key(subject))
    return page.go(subject.link("health"))


def storage(page: Page) -> Response:
    """Show the storage used by a table, by purpose."""
    subject = TablePage.of(page, "storage")

    def work(listener: Listener) -> StorageLayout:
        return subject.table.maintenance.storage_layout(progress=listener)

    def make(layout: StorageLayout) -> dict[str, Any]:
        parts = [
            ("live", layout.live, "c1", "files of the current snapshot"),
            (
                "history",
                layout.history,
                "c3",
                "files that only earlier snapshots, branches and tags reference; freed by expiring snapshots",
            ),
            ("metadata", layout.metadata, "c4", "metadata files, manifest lists, manifests and statistics"),
            (
                "unreferenced",
                layout.unreferenced,
                "bad",
                "files that the table does not reference, including those of running writers",
            ),
        ]
        slices = [Slice(name, share.bytes, cls, f"{name}: {size(share.bytes)}") for name, share, cls, _ in parts]
        return {"layout": layout, "parts_of": parts, "chart": share_chart("Bytes by purpose", slices)}

    return subject.render_job("storage.html", subject.ask("storage", "Computing storage", work), make)


def verify(page: Page) -> Response:
    """Show the verification form and the result of the last run."""
    subject = TablePage.of(page, "verify")
    number = page.number("job")
    job = _visible_job(page, number) if number else None
    findings = [] if job is None or job.result is None else job.result.findings[:_FINDINGS]
    return subject.render("verify.html", levels=_levels(page), job=job, findings=findings, most=_FINDINGS)


def _levels(page: Page) -> Mapping[str, str]:
    """Return the available levels: files that a table references are not accessed where rows are not shown."""
    return _LEVELS if page.site.shows_rows else {Level.METADATA: _LEVELS["metadata"]}


def start_verify(page: Page) -> Response:
    """Start a verification."""
    subject = TablePage.of(page, "verify")
    level = page.form.get("level", "")
    if level not in _levels(page):
        raise errors.InvalidInputError(f"level must be one of {', '.join(_levels(page))}, not {level!r:.40}")
    job = page.site.jobs.begin(
        ("verify", subject.catalog, subject.identifier, level),
        f"Verify {subject.text}: {level}",
        (subject.catalog, subject.identifier),
        lambda listener: subject.table.verify(level=level, progress=listener),
    )
    return page.go(subject.link("verify", job=job.number))


def _step(page: Page) -> tuple[Step, Remedy, Procedure]:
    wanted = page.name("step")
    for step, remedy in REMEDIES.items():
        if remedy.finding == wanted:
            return step, remedy, PROCEDURES[step]
    raise errors.NoSuchObjectError(f"no maintenance step {wanted!r:.60}")


def plan(page: Page) -> Response:
    """Show the plan of a maintenance step."""
    subject = TablePage.of(page, "health")
    _, remedy, procedure = _step(page)
    job = subject.ask("plan", "Planning", lambda _: procedure.plan(subject.table.maintenance), remedy.finding)
    return subject.render_job(
        "plan.html",
        job,
        lambda planned: {"planned": str(planned)},
        remedy=remedy,
        command=remedy.command(subject.text),
    )


def start_step(page: Page) -> Response:
    """Start a maintenance step."""
    subject = TablePage.of(page, "health")
    _, remedy, procedure = _step(page)
    job = page.site.jobs.begin(
        ("run", subject.catalog, subject.identifier),
        f"{remedy.command(subject.text)}",
        (subject.catalog, subject.identifier),
        lambda listener: procedure.run(subject.table.maintenance, listener),
    )
    return page.go(page.link("jobs", str(job.number)))


def jobs(page: Page) -> Response:
    """List the jobs that users started, newest first."""
    shown = [job for job in page.site.jobs.listed() if _may_see(page, job)]
    return page.render("jobs.html", jobs=shown)


def job(page: Page) -> Response:
    """Show a job with its progress."""
    shown = _visible_job(page, int(page.request.path_params["number"]))
    return page.render("job.html", job=shown, text=None if shown.result is None else str(shown.result))


def _visible_job(page: Page, number: int) -> Job:
    known = page.site.jobs.numbered(number)
    if known is None or not _may_see(page, known):
        raise errors.NoSuchObjectError(f"no job {number}; jobs are kept until the server stops")
    return known


def _may_see(page: Page, job: Job) -> bool:
    visitor = page.visitor
    return visitor.sees_catalog(job.catalog) and visitor.may_read(job.catalog, job.identifier, TABLE)
