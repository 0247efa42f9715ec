"""Nessie, a catalog server of another make, as a process on loopback: where it is, and how it is started on a store of ours."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.storage.servers import ACCESS_KEY, SECRET, S3Server

PROJECT = Path(__file__).parents[2]
HOME_VARIABLE, JAVA_VARIABLE = "ICEFLOE_NESSIE", "ICEFLOE_NESSIE_JAVA"
OLDEST_JAVA = 21
_STORE = "nessie.catalog.service.s3.default-options"
_JARS = "nessie-quarkus-*-runner.jar"
_LISTENS = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True, slots=True)
class Nessie:
    """Its one jar, and a Java that is new enough for it."""

    jar: Path
    java: str

    @property
    def version(self) -> str:
        return self.jar.name.removeprefix("nessie-quarkus-").removesuffix("-runner.jar")


def find_nessie(environment: Mapping[str, str] = os.environ) -> Nessie | str:
    """What is needed to run it, or the reason why that is not possible."""
    home = Path(environment.get(HOME_VARIABLE, str(PROJECT / ".venv-nessie")))
    jars = sorted(home.glob(_JARS))
    if not jars:
        return f"there is no Nessie at {home}: `make nessie` fetches it"
    places = sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java")))
    java = next(filter(_is_new_enough, (environment.get(JAVA_VARIABLE, "java"), *places)), None)
    if java is None:
        return f"Nessie needs Java {OLDEST_JAVA}, and none is found; {JAVA_VARIABLE} names one"
    return Nessie(jars[-1], java)


def _is_new_enough(java: str) -> bool:
    if shutil.which(java) is None:
        return False
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    return version is not None and int(version[1]) >= OLDEST_JAVA


@contextmanager
def running_nessie(nessie: Nessie, store: S3Server, folder: Path) -> Iterator[str]:
    """The URI for REST catalogs of a server that keeps names in memory, and tables in a bucket of the store."""
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.log.console.json": "false",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{store.new_bucket()}/lake",
        f"{_STORE}.endpoint": store.endpoint,
        f"{_STORE}.region": "us-east-1",
        f"{_STORE}.path-style-access": "true",
        f"{_STORE}.access-key": "urn:nessie-secret:quarkus:store.key",
        "store.key.name": ACCESS_KEY,
        "store.key.secret": SECRET,
    }
    little = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    options = (f"-D{key}={value}" for key, value in settings.items())
    log = folder / "nessie.log"
    with log.open("w") as out:
        command = [nessie.java, *little, *options, "-jar", str(nessie.jar)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder)
    try:
        yield f"{_listening(process, log)}/iceberg"
    finally:
        process.kill()
        process.wait()


def _listening(process: "subprocess.Popen[bytes]", log: Path) -> str:
    while True:
        said = _LISTENS.search(log.read_text())
        if said is not None:
            return said[1]
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"Nessie did not start: {log.read_text()[-2000:]}")
