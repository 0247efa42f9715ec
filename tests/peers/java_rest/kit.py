"""The compatibility kit of the Iceberg project: its tests of tables and views, run by a Java client against any REST server."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.peers.java_rest.installation import JavaRest

PROGRAM = "org.junit.platform.console.ConsoleLauncher"
SUITES = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")
SETTINGS = {
    "rck.local": "false",
    # As the REST document says: tables are created in namespaces that exist.
    "rck.requires-namespace-create": "true",
    "warehouse": "kit",
    # A failure of the server shows soon.
    "rest.client.max-retries": "1",
    "rest.client.connection-timeout-ms": "10000",
    "rest.client.socket-timeout-ms": "60000",
}


@dataclass(frozen=True, slots=True)
class KitResult:
    """Names of tests; those that failed with what they say."""

    passed: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: Mapping[str, str]

    def __str__(self) -> str:
        """As on a line of pytest."""
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def run_kit(
    installation: JavaRest, uri: str, reports: Path, settings: Mapping[str, str] | None = None, match: str = ".*"
) -> KitResult:
    """Run it against a server that it has for itself: it makes and drops namespaces, and expects none of theirs.

    `settings` are properties of the Java client; `match` is a pattern of the names of tests.
    """
    wanted = ["--include-methodname", f".*#{match}"]
    classes = [part for suite in SUITES for part in ("--select-class", f"org.apache.iceberg.rest.{suite}")]
    arguments = ["execute", *classes, *wanted, "--details=none", "--disable-banner", f"--reports-dir={reports}"]
    command = installation.command(PROGRAM, arguments, {**SETTINGS, "uri": uri, **(settings or {})})
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    # 1 says that tests failed, anything above that the kit could not be run.
    assert run.returncode in (0, 1), run.stdout[-2000:] + run.stderr[-2000:]
    return read_report(reports / "TEST-junit-jupiter.xml")


def read_report(report: Path) -> KitResult:
    """What a report in JUnit's form says."""
    passed, skipped, failed = [], [], {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            failed[name] = (problem.text or "")[:1000]
        elif case.find("skipped") is not None:
            skipped.append(name)
        else:
            passed.append(name)
    return KitResult(tuple(passed), tuple(skipped), failed)
