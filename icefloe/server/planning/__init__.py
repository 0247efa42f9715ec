"""Scan planning on the server: plans at once or in the background, in pages that any replica can serve."""

from icefloe.server.planning.operations import PlanOperations
from icefloe.server.planning.scans import PlannedTable
from icefloe.server.planning.service import PlanningService, PlanningSettings
