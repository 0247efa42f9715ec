"""What a check found: findings and figures as values, and as text to read."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from icefloe.errors import CorruptTableError
from icefloe.verification.codes import Code, Level, Severity

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: with which file, in which snapshot."""

    code: Code
    message: str
    location: str | None = None
    """The file concerned, if it is one."""
    snapshot_id: int | None = None

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.code.severity

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.described()}"

    def described(self) -> str:
        """File, message and snapshot in one line."""
        where = "" if self.location is None else f"{self.location}: "
        of = "" if self.snapshot_id is None else f" (snapshot {self.snapshot_id})"
        return f"{where}{self.message}{of}"


@dataclass(frozen=True, slots=True)
class Figures:
    """How much was checked."""

    snapshots: int = 0
    manifests: int = 0
    entries: int = 0
    """Entries of manifests, each manifest once."""
    files: int = 0
    """Data, delete, statistics and metadata files whose existence and length were asked for."""
    footers: int = 0
    """Files of which footers or deletion vectors were read."""
    rows: int = 0
    """Rows that were read."""
    skipped: int = 0
    """Files that could not be looked into, because they are encrypted."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The outcome of a check. Of very many findings of one code only the first are kept; `counts` has them all."""

    level: Level
    findings: tuple[Finding, ...]
    figures: Figures
    counts: Mapping[Code, int] = field(default_factory=dict, hash=False)

    @property
    def ok(self) -> bool:
        """Whether there is no error; there may be warnings."""
        return not self.errors

    @property
    def clean(self) -> bool:
        """Whether there is nothing to say at all."""
        return not self.findings

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return tuple(each for each in self.findings if each.severity is Severity.WARNING)

    @property
    def codes(self) -> frozenset[Code]:
        """The kinds of findings that there are."""
        return frozenset(each.code for each in self.findings)

    def raise_if_broken(self) -> None:
        """Fail with the whole report if there is an error."""
        if not self.ok:
            raise CorruptTableError(str(self))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        done = self.figures
        errors = sum(count for code, count in self.counts.items() if code.severity is Severity.ERROR)
        warnings = sum(self.counts.values()) - errors
        verdict = "clean" if self.clean else "ok, with warnings" if self.ok else "broken"
        yield f"{verdict}: {errors} errors, {warnings} warnings (level {self.level})"
        yield (
            f"checked in {done.seconds:.1f} s: {done.snapshots} snapshots, {done.manifests} manifests, "
            f"{done.entries} entries, {done.files} files, {done.footers} footers, {done.rows} rows"
        )
        if done.skipped:
            yield f"not looked into: {done.skipped} encrypted files"
        for code in Code:
            if code in self.counts:
                yield f"{code.severity}: {code} ({self.counts[code]}): {code.meaning}"
                yield from self._shown(code)

    def _shown(self, code: Code) -> Iterator[str]:
        found = [each for each in self.findings if each.code is code]
        yield from (f"  {each.described()}" for each in found[:_SHOWN])
        if self.counts[code] > len(found[:_SHOWN]):
            yield f"  ... and {self.counts[code] - len(found[:_SHOWN])} more"


class Findings:
    """Gathers findings from several threads, of each code up to a limit; the same one of a file once, for all snapshots."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], Finding] = {}
        self.counts: Counter[Code] = Counter()

    def add(self, code: Code, message: str, location: str | None = None, snapshot_id: int | None = None) -> None:
        """One more finding."""
        found = Finding(code, message, location, snapshot_id)
        key = (code, message, snapshot_id if location is None else location)
        with self._lock:
            if key in self._found:
                return
            self.counts[code] += 1
            if self.counts[code] <= self._limit:
                self._found[key] = found

    def is_full(self, code: Code) -> bool:
        """Whether more findings of a code would only be counted."""
        return self.counts[code] >= self._limit

    def count(self, code: Code, more: int) -> None:
        """Findings that are not worth the work of naming their files."""
        with self._lock:
            self.counts[code] += more

    def sorted(self) -> tuple[Finding, ...]:
        """All findings: errors first, then by code, snapshot and file."""
        order = {code: place for place, code in enumerate(Code)}

        def key(each: Finding) -> tuple[bool, int, int, str, str]:
            is_warning = each.severity is Severity.WARNING
            return is_warning, order[each.code], each.snapshot_id or 0, each.location or "", each.message

        return tuple(sorted(self._found.values(), key=key))
