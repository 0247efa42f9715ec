"""Decides which events of OpenLineage come of reports: what a program scans is its input, what it commits its output.

Events leave in the background. One that cannot be sent is lost, and the log says so; neither scan nor commit waits or fails.
"""

import atexit
import datetime as dt
import logging
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    error_message_run as problems,
    job_type_job as kinds,
    parent_run as parents,
    processing_engine_run as engines,
)
from openlineage.client.uuid import generate_new_uuid

from icefloe.catalog.lineage.datasets import input_of, output_of
from icefloe.catalog.lineage.settings import OPERATION, LineageSettings, client_config, lineage_settings
from icefloe.catalog.report_queue import ReportQueue
from icefloe.commit import CommitReport
from icefloe.errors import InvalidPropertyError, without_credentials
from icefloe.planning import ScanReport

LOG = logging.getLogger("icefloe.catalog")

_PARENT = "OPENLINEAGE_PARENT_ID"
_VERSION = installed_version("icefloe")
_PRODUCER = f"pkg:pypi/icefloe@{_VERSION}"
_COMMITTED = "committed"


class OpenLineageReporter:
    """Tells an OpenLineage service which tables of a catalog are scanned and changed."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._properties = dict(properties)
        self._settings = lineage_settings(properties)

    def __reduce__(self) -> tuple[type["OpenLineageReporter"], tuple[str, dict[str, str]]]:
        return OpenLineageReporter, (self._catalog, self._properties)

    def report(self, report: Any) -> None:
        """Take a report, to be told of later."""
        if isinstance(report, ScanReport | CommitReport):
            _lineage_of(self._settings).tell(_Event(report, self._catalog, self._properties, _now()))

    def check(self) -> None:
        """Fail if the client cannot be had with these settings."""
        try:
            _lineage_of(self._settings)
        except InvalidPropertyError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever its transports raise, the settings are what is wrong
            raise InvalidPropertyError(
                f"the OpenLineage client does not accept openlineage.transport.*: {without_credentials(str(error))}"
            ) from None


def open_lineage_reporter(catalog: str, properties: Mapping[str, str]) -> OpenLineageReporter:
    """The reporter of a catalog, with settings that its client takes."""
    reporter = OpenLineageReporter(catalog, properties)
    reporter.check()
    return reporter


@dataclass(frozen=True, slots=True)
class _Event:
    """A report, and what it is about."""

    report: ScanReport | CommitReport
    catalog: str
    properties: Mapping[str, str]
    time: dt.datetime

    @property
    def operation(self) -> str:
        """What was done, as a job is called."""
        return "scan" if isinstance(self.report, ScanReport) else self.report.operation or "alter"

    @property
    def is_done(self) -> bool:
        return isinstance(self.report, ScanReport) or self.report.outcome == _COMMITTED

    def datasets(self) -> tuple[list[InputDataset], list[OutputDataset]]:
        """What was read, and what was written."""
        if isinstance(self.report, ScanReport):
            return [input_of(self.report, self.catalog, self.properties)], []
        return [], [output_of(self.report, self.catalog, self.properties)]


class _Lineage:
    """The events of one process under the same settings; the run of the process ends with it."""

    def __init__(self, settings: LineageSettings) -> None:
        self._settings = settings
        self._client = OpenLineageClient(config=client_config(settings))
        self._queue: ReportQueue[_Event] = ReportQueue(self._send)
        self._run_id = str(generate_new_uuid())
        self._is_begun = False
        # Not by the thread that sends: a program may end before that thread has sent anything.
        atexit.register(self._end, os.getpid())

    def tell(self, event: _Event) -> None:
        """Send what comes of a report, later."""
        self._queue.put(event.report.table, event)

    def _send(self, event: _Event) -> None:
        if self._settings.run == OPERATION:
            self._send_whole(event)
        elif event.is_done:
            # What did not happen is no output; if nobody catches its error, the run fails of it.
            self._begin(event.time)
            read, written = event.datasets()
            self._emit(RunState.RUNNING, event.time, self._run_id, self._settings.job_name, read, written)

    def _send_whole(self, event: _Event) -> None:
        """One run from its start to its end, for one report."""
        report, run_id = event.report, str(generate_new_uuid(event.time))
        name = f"{self._settings.job_name}.{event.operation}.{report.table or 'unnamed'}"
        began = event.time - dt.timedelta(seconds=report.seconds)
        self._emit(RunState.START, began, run_id, name)
        if event.is_done:
            read, written = event.datasets()
            self._emit(RunState.COMPLETE, event.time, run_id, name, read, written)
            return
        problem = getattr(report, "problem", None) or "it did not happen"
        self._emit(RunState.FAIL, event.time, run_id, name, problem=problem)

    def _begin(self, time: dt.datetime) -> None:
        if not self._is_begun:
            self._emit(RunState.START, time, self._run_id, self._settings.job_name)
            self._is_begun = True

    def _end(self, process: int) -> None:
        """The run of the process ends: failed if an exception that nobody caught ends the program."""
        if os.getpid() != process or not self._queue.close() or not self._is_begun:
            return
        if self._queue.is_failing:
            LOG.warning("the end of the OpenLineage run %s is not told, as its newest event was not sent", self._run_id)
            return
        error = getattr(sys, "last_value", None)
        state = RunState.COMPLETE if error is None else RunState.FAIL
        try:
            self._emit(
                state, _now(), self._run_id, self._settings.job_name, problem=None if error is None else str(error)
            )
            self._client.close(timeout=1.0)
        except Exception as failure:  # noqa: BLE001 - the program has done its work
            LOG.warning(
                "the end of the OpenLineage run %s was not sent: %s", self._run_id, without_credentials(str(failure))
            )

    def _emit(
        self,
        state: RunState,
        time: dt.datetime,
        run_id: str,
        job: str,
        inputs: list[InputDataset] | None = None,
        outputs: list[OutputDataset] | None = None,
        problem: str | None = None,
    ) -> None:
        facets: dict[str, RunFacet] = {
            "processing_engine": engines.ProcessingEngineRunFacet(_VERSION, "icefloe"),
            **_parent(),
        }
        if problem is not None:
            facets["errorMessage"] = problems.ErrorMessageRunFacet(without_credentials(problem), "PYTHON")
        kind = kinds.JobTypeJobFacet("BATCH", "ICEFLOE", "JOB")
        self._client.emit(
            RunEvent(
                eventType=state,
                eventTime=time.isoformat(),
                run=Run(run_id, facets),
                job=Job(self._settings.job_namespace, job, {"jobType": kind}),
                producer=_PRODUCER,
                inputs=inputs or [],
                outputs=outputs or [],
            )
        )


def _parent() -> dict[str, RunFacet]:
    """The run that this one is part of, as Airflow and dbt tell it: `namespace/job/run id`."""
    text = os.environ.get(_PARENT)
    if not text:
        return {}
    parts = text.rsplit("/", 2)
    try:
        namespace, name, run_id = parts
        facet = parents.ParentRunFacet(parents.Run(run_id), parents.Job(namespace, name))
    except ValueError:
        LOG.warning("%s is %r, which is no namespace/job/run id; it is left out", _PARENT, text)
        return {}
    return {"parent": facet}


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


_LOCK = threading.Lock()
_KNOWN: dict[tuple[int, LineageSettings], _Lineage] = {}


def _lineage_of(settings: LineageSettings) -> _Lineage:
    """What tells the events of this process under these settings: catalogs that have the same ones share a run."""
    key = os.getpid(), settings
    with _LOCK:
        if key not in _KNOWN:
            _KNOWN[key] = _Lineage(settings)
        return _KNOWN[key]
