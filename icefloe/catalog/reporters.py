"""Decides where reports of scans and commits of a catalog go: to the log, to OpenLineage, or to code that a property names."""

from collections.abc import Mapping

from icefloe import planning
from icefloe.errors import NotInstalledError

REPORTER = "metrics-reporter-impl"
OPEN_LINEAGE = "openlineage"


def reporter_of(catalog: str, properties: Mapping[str, str]) -> planning.Reporter:
    """The reporter that the properties of a catalog ask for."""
    name = properties.get(REPORTER, planning.LOGGING)
    if name != OPEN_LINEAGE:
        return planning.reporter_named(name)
    try:
        from icefloe.catalog.lineage import open_lineage_reporter
    except ImportError as error:
        raise NotInstalledError(
            f"{REPORTER!r} is {OPEN_LINEAGE!r}, but its client is not installed ({error}); run `pip install 'icefloe[openlineage]'`"
        ) from error
    return open_lineage_reporter(catalog, properties)
