"""Lineage: what scans read and commits write, told to an OpenLineage service."""

from icefloe.catalog.lineage.reporter import OpenLineageReporter, open_lineage_reporter
from icefloe.catalog.lineage.settings import LineageSettings
