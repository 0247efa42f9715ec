"""How a plan becomes pages: which manifests go together, and which files of them are in which page.

A part of a plan names data manifests by their places in the list of the snapshot, which never changes. Whoever knows the scan
and the part can plan it, so that a server keeps nothing for a client between two pages.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar

from icefloe.errors import NoSuchPlanTaskError
from icefloe.manifests import ManifestContent, ManifestFile
from icefloe.planning import CallingReporter, FileScanTask, Plan, PlanRequest, Progress, manifests_of_plan
from icefloe.server.planning.scans import PreparedScan


@dataclass(frozen=True, slots=True)
class Part:
    """Data manifests from `first` up to `last`, which is not part of it; and of the files that they give, a range.

    A part without files is about all manifests from `first` on, and stands for further parts.
    """

    first: int
    last: int | None = None
    start: int = 0
    stop: int | None = None

    @property
    def is_rest(self) -> bool:
        """Whether it stands for parts, not for files."""
        return self.last is None


@dataclass(frozen=True, slots=True)
class Page:
    """Some files of a plan, and the parts that are left."""

    tasks: tuple[FileScanTask, ...] = ()
    parts: tuple[Part, ...] = ()


class Cancelled(Exception):
    """The plan is not wanted any more."""


Item = TypeVar("Item")
Check = Callable[[], None]
"""Called now and then; it raises to end the work."""


def first_page(scan: PreparedScan, page_files: int, most_parts: int, check: Check) -> Page:
    """All files if they are few, else the parts that the plan consists of."""
    if scan.plan is None:
        return Page()
    if scan.plan.limit is not None:
        few = _enough(scan, scan.plan, page_files, check)
        if few is not None:
            return Page(few)
    parts = parts_from(scan, 0, page_files, most_parts)
    return page_of(scan, parts[0], page_files, check) if len(parts) == 1 else Page(parts=parts)


def parts_from(scan: PreparedScan, first: int, page_files: int, most_parts: int) -> tuple[Part, ...]:
    """The parts of a plan from one of its manifests on: about one for each page, but not many more than `most_parts`."""
    if scan.plan is None:
        return ()
    parts = list(islice(_parts(scan.plan, first, page_files), most_parts + 1))
    if len(parts) <= most_parts:
        return tuple(parts)
    rest = parts[most_parts].first
    if kept := [part for part in parts[:most_parts] if part.first < rest]:
        return (*kept, Part(rest))
    # One manifest has more pages than that: one after the other, then.
    return (Part(rest, rest + 1), Part(rest + 1))


def _parts(plan: PlanRequest, first: int, page_files: int) -> Iterator[Part]:
    chosen, _ = manifests_of_plan(plan)
    wanted = {manifest.manifest_path for manifest in chosen}
    start = last = first
    files = 0
    for index, manifest in enumerate(_of_data(plan.manifests())):
        if index < first or manifest.manifest_path not in wanted:
            continue
        known = _live_files(manifest)
        if files and files + (page_files if known is None else known) > page_files:
            yield Part(start, last)
            files = 0
        if known is None or known > page_files:
            yield from _parts_of_one(index, known or 0, page_files)
            start = last = index + 1
            continue
        start = start if files else index
        last, files = index + 1, files + known
    if files:
        yield Part(start, last)


def _parts_of_one(index: int, files: int, page_files: int) -> Iterator[Part]:
    """The parts of a large manifest; the last one takes what a wrong count left out."""
    starts = range(0, max(files, 1), page_files)
    for start in starts:
        yield Part(index, index + 1, start, None if start == starts[-1] else start + page_files)


def page_of(scan: PreparedScan, part: Part, page_files: int, check: Check) -> Page:
    """The files of a part, and if they are more than a page, the part that is left."""
    whole = scan.plan
    if whole is None:
        return Page()
    plan = replace(whole, manifests=lambda: _manifests(whole, part), limit=None)
    stop = part.start + page_files
    is_more_wanted = part.stop is None or part.stop > stop
    with closing(_tasks(plan, check)) as tasks:
        page = [*islice(tasks, part.start, stop + 1 if is_more_wanted else part.stop)]
        shown = tuple(map(scan.shown, page[:page_files]))
    return Page(shown, (replace(part, start=stop),) if len(page) > page_files else ())


def _enough(scan: PreparedScan, plan: PlanRequest, page_files: int, check: Check) -> tuple[FileScanTask, ...] | None:
    """The files that have as many rows as the client asks for; None if they are more than a page."""
    with closing(Plan(_progress(plan)).tasks()) as tasks:
        shown = [scan.shown(task) for task in _checked(islice(tasks, page_files + 1), check)]
    return tuple(shown) if len(shown) <= page_files else None


def _tasks(plan: PlanRequest, check: Check) -> Generator[FileScanTask, None, None]:
    with Plan(_progress(plan)) as batches:
        yield from chain.from_iterable(batch.tasks() for batch in _checked(iter(batches), check))


def _progress(plan: PlanRequest) -> Progress:
    # A page is no scan, so nobody is told of it.
    return Progress(plan, (), CallingReporter(lambda _: None))


def _checked(items: Iterable[Item], check: Check) -> Iterator[Item]:
    for item in items:
        check()
        yield item


def _manifests(plan: PlanRequest, part: Part) -> list[ManifestFile]:
    """The data manifests of a part, and all delete manifests."""
    manifests = plan.manifests()
    of_data = _of_data(manifests)
    if part.last is None or not 0 <= part.first < part.last <= len(of_data):
        raise NoSuchPlanTaskError(f"the plan has {len(of_data)} manifests, and the task is about others")
    of_deletes = [manifest for manifest in manifests if manifest.content is ManifestContent.DELETES]
    return [*of_deletes, *of_data[part.first : part.last]]


def _of_data(manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
    return [manifest for manifest in manifests if manifest.content is ManifestContent.DATA]


def _live_files(manifest: ManifestFile) -> int | None:
    """How many files of the manifest are part of the snapshot; None if that is not known."""
    added, existing = manifest.added_files_count, manifest.existing_files_count
    return None if added is None or existing is None else added + existing
