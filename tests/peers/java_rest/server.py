"""Java Iceberg's REST catalog server as a process on loopback."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.peers.java_rest.installation import JavaRest

PROGRAM = "org.apache.iceberg.rest.LoopbackServer"


def sqlite_properties(folder: Path) -> dict[str, str]:
    """A JDBC catalog in a folder: one connection, since SQLite has one writer."""
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:file:{folder / 'java.db'}?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "clients": "1",
        "warehouse": f"file:{folder / 'warehouse'}",
    }


@contextmanager
def java_rest_server(installation: JavaRest, properties: Mapping[str, str]) -> Iterator[str]:
    """The URI of a running server over the catalog of these properties; it ends with the block."""
    command = installation.command(PROGRAM, (f"{key}={value}" for key, value in properties.items()))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "the Java server did not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
