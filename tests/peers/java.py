"""Java Iceberg as a black box: a Spark of its own, in another process and another virtual environment.

`make test-peers` puts the Python and the jars where `find_java_peer` looks; the environment can name others.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.peers.worker import Worker

PROJECT = Path(__file__).parents[2]
PYTHON_VARIABLE = "ICEFLOE_JAVA_PYTHON"
JARS_VARIABLE = "ICEFLOE_JAVA_JARS"
RUNTIME = "iceberg-spark-runtime"
JDBC_DRIVER = "sqlite-jdbc"
JAVA_VERSIONS = (1, 2, 3)
"""The format versions that the newest release of Java Iceberg reads and writes as a whole."""
JAVA_WRITES = (*JAVA_VERSIONS, 4)
"""It writes v4 too, with absolute paths only; it does not resolve relative ones, so it cannot read what others write."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the peer is: a Python with PySpark, and the jars."""

    python: Path
    jars: tuple[Path, ...]

    @property
    def iceberg_version(self) -> str:
        """The release of Java Iceberg, by the name of its jar."""
        [runtime] = [jar for jar in self.jars if jar.name.startswith(RUNTIME)]
        return runtime.stem.rpartition("-")[2]


def find_java_peer(environment: Mapping[str, str] = os.environ) -> Installation | str:
    """The peer, or the reason why it cannot be run."""
    if shutil.which("java") is None:
        return "no Java is on the path"
    home = PROJECT / ".venv-java"
    python = Path(environment.get(PYTHON_VARIABLE, str(home / "bin" / "python")))
    if not python.exists():
        return f"there is no Java peer at {python}: `make test-peers` sets it up"
    given = environment.get(JARS_VARIABLE)
    jars = tuple(map(Path, given.split(os.pathsep))) if given else tuple(sorted((home / "jars").glob("*.jar")))
    for wanted in (RUNTIME, JDBC_DRIVER):
        if sum(jar.exists() and jar.name.startswith(wanted) for jar in jars) != 1:
            return f"not one jar {wanted} among {[jar.name for jar in jars]}: `make test-peers` fetches it"
    return Installation(python, jars)


class JavaPeer(Worker):
    """A running Java Iceberg. By `sql` it writes the rows of a statement in one task, and so as one file, if nothing else is said."""

    usual = MappingProxyType({"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"})

    def __init__(self, installation: Installation, folder: Path, settings: Mapping[str, str]) -> None:
        self.installation = installation
        super().__init__(
            installation.python,
            "java_worker.py",
            folder,
            _spark_settings(installation, folder) | dict(settings),
            PYSPARK_PYTHON=str(installation.python),
            SPARK_LOCAL_IP="127.0.0.1",
        )


def _spark_settings(installation: Installation, folder: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": ",".join(map(str, installation.jars)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
