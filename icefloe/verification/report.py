"""The result of a check: findings and figures as values, and as text to read."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    @property
    def codes(self) -> frozenset[Code]:
        """The kinds of findings that there are."""
        return frozenset(finding.code for finding in self.findings)

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
        for code in Code:
            if code in self.counts:
                yield f"{code.severity}: {code} ({self.counts[code]}): {code.meaning}"
                yield from self._shown(code)

    def _shown(self, code: Code) -> Iterator[str]:
        shown = [finding for finding in self.findings if finding.code is code][:_SHOWN]
        yield from (f"  {finding.described()}" for finding in shown)
        if self.counts[code] > len(shown):
            yield f"  ... and {self.counts[code] - len(shown)} more"


class Findings:
    """Gathers findings from several threads, of each code up to a limit; the same one of a file once, for all snapshots."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._findings: dict[tuple[object, ...], Finding] = {}
        self.counts: Counter[Code] = Counter()

    def add(self, code: Code, message: str, location: str | None = None, snapshot_id: int | None = None) -> None:
        """One more finding."""
        key = (code, message, snapshot_id if location is None else location)
        with self._lock:
            if key in self._findings:
                return
            self.counts[code] += 1
            if self.counts[code] <= self._limit:
                self._findings[key] = Finding(code, message, location, snapshot_id)

    def add_each(
        self,
        code: Code,
        is_wrong: npt.NDArray[np.bool_],
        message: str | Callable[[int], str],
        path_of: Callable[[int], str],
        snapshot_id: int | None = None,
    ) -> None:
        """A finding for each file that is marked; beyond the limit they are not worth the work of naming their files."""
        for index in np.flatnonzero(is_wrong).tolist():
            if self.counts[code] < self._limit:
                text = message if isinstance(message, str) else message(index)
                self.add(code, text, path_of(index), snapshot_id)
            else:
                with self._lock:
                    self.counts[code] += 1

    def sorted(self) -> tuple[Finding, ...]:
        """All findings: errors first, then by code, snapshot and file."""
        order = {code: rank for rank, code in enumerate(Code)}

        def key(finding: Finding) -> tuple[bool, int, int, str, str]:
            is_warning = finding.severity is Severity.WARNING
            return is_warning, order[finding.code], finding.snapshot_id or 0, finding.location or "", finding.message

        return tuple(sorted(self._findings.values(), key=key))
