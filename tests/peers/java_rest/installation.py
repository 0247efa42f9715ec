"""Where the jars are that `make java-rest` fetches, and how a program of theirs is started."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[3]
HOME_VARIABLE = "ICEFLOE_JAVA_REST"
KIT_JAR = "iceberg-open-api"


@dataclass(frozen=True, slots=True)
class JavaRest:
    """The folder with `jars` and the compiled `classes` of ours."""

    home: Path

    def command(self, program: str, arguments: Iterable[str], settings: Mapping[str, str] | None = None) -> list[str]:
        """How a program of the jars is started, in little memory and without its log."""
        options = {"org.slf4j.simpleLogger.defaultLogLevel": "off", **(settings or {})}
        path = f"{self.home / 'classes'}{os.pathsep}{self.home / 'jars'}/*"
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", *(f"-D{key}={value}" for key, value in options.items())]
        return [*java, "-cp", path, program, *arguments]


def find_java_rest(environment: Mapping[str, str] = os.environ) -> JavaRest | str:
    """The jars, or the reason why they cannot be run."""
    if shutil.which("java") is None:
        return "no Java is on the path"
    home = Path(environment.get(HOME_VARIABLE, str(PROJECT / ".venv-java-rest")))
    if not (home / "classes").exists() or not list((home / "jars").glob(f"{KIT_JAR}-*.jar")):
        return f"there is no Java REST server at {home}: `make java-rest` fetches it"
    return JavaRest(home)
