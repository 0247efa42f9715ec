"""Decides how the JVMs of the suite run: dozens are started, and each runs small queries."""

import os
import subprocess
import sys
from pathlib import Path

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Optimizing code takes longer than it saves here."""
ROOMY = ("-XX:ReservedCodeCacheSize=512m", "-XX:MetaspaceSize=512m", "-XX:NewRatio=1", "-XX:InitialRAMPercentage=5")
"""Each query is compiled to classes of its own. In a place of the usual size, code that is needed again is thrown away after a
few files of tests, and the whole heap is collected dozens of times to make room for classes."""
ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Spark's classes as a JVM maps them: half of the time that a Spark takes to start is for reading and verifying them."""
SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""A JVM with other classes cannot use the archive, and does without it."""
PROGRAM = """
import tempfile
import icefloe
with tempfile.TemporaryDirectory() as folder:
    catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
    ice = icefloe.connect(catalog)
    ice.sql("CREATE NAMESPACE db")
    ice.sql("CREATE TABLE db.t (k BIGINT, v STRING) TBLPROPERTIES ('format-version' = '3')")
    ice.sql("INSERT INTO db.t SELECT id, CAST(id AS STRING) FROM range(99)")
    ice.sql("UPDATE db.t SET v = 'x' WHERE k < 9")
    ice.sql("SELECT v, count(*) FROM db.t GROUP BY v").collect()
    java = ice.spark.sparkContext._gateway.proc
    ice.spark.stop()
    java.stdin.close()
    raise SystemExit(java.wait())
"""
"""It waits for its JVM, which writes the archive when it ends, and ends as that does."""


def java_options() -> tuple[str, ...]:
    """The options of every JVM."""
    return (*QUICK, *ROOMY, f"-XX:SharedArchiveFile={ARCHIVE}", *SILENT) if ARCHIVE.exists() else (*QUICK, *ROOMY)


def write_archive() -> None:
    """Run a small query, and keep the classes that it needed; without a Java that can do it there is no archive.

    Half an archive must not be kept: a JVM looks at its beginning only, and breaks off.
    """
    unfinished = ARCHIVE.with_suffix(".unfinished")
    options = (*QUICK, f"-XX:ArchiveClassesAtExit={unfinished}", *SILENT)
    environment = os.environ | {"JDK_JAVA_OPTIONS": " ".join(options)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0 and unfinished.exists():
        unfinished.replace(ARCHIVE)
    else:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    write_archive()
