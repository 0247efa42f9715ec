"""The compatibility kit of the Iceberg project, which judges REST servers, finds nothing to say against ours."""

from pathlib import Path

import pytest

from tests.peers.java_rest.installation import find_java_rest
from tests.peers.java_rest.kit import run_kit
from tests.server.running import Maker, serving

MODES: dict[str, dict[str, str]] = {
    "plain": {},
    "paged": {"rest-page-size": "1"},
    "refs": {"snapshot-loading-mode": "refs"},
    "planning": {"scan-planning-mode": "server"},
}
NOT_RUN = {"planning": "(?!testCatalogWithCustomMetricsReporter).*"}
"""The Java client reports no scans that a server planned."""
SKIPPED = 12
"""What the kit itself leaves out for every server."""


@pytest.mark.java
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("make_catalog", "mode"),
    [
        ("sqlite", "plain"),
        *(
            pytest.param(database, mode, marks=pytest.mark.slow)
            for database in ("sqlite", "postgres")
            for mode in MODES
            if (database, mode) != ("sqlite", "plain")
        ),
    ],
    indirect=["make_catalog"],
)
def test_the_kit_passes(make_catalog: Maker, mode: str, tmp_path: Path) -> None:
    installation = find_java_rest()
    if isinstance(installation, str):
        pytest.skip(installation)
    with serving({"lake": make_catalog()}) as server:
        settings = {**MODES[mode], "warehouse": "lake"}
        result = run_kit(installation, server.url, tmp_path / "report", settings, NOT_RUN.get(mode, ".*"))
    assert result.failed == {}
    assert len(result.skipped) == SKIPPED, result.skipped
    assert len(result.passed) > 140, result
