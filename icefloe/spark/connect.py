"""`icefloe.connect`: a session on your catalogs and your Spark, or on an embedded default of either.

Catalogs may be named by the settings of a Spark session, as people have them for Iceberg's jar: `spark.sql.catalog.<name>.*`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from icefloe.catalog import EMBEDDED_CATALOG, Catalog, embedded_catalog, load_catalog
from icefloe.errors import InvalidInputError, InvalidPropertyError, NotInstalledError
from icefloe.spark.data_source import register_format
from icefloe.spark.session import Session
from icefloe.spark.spark_sessions import is_classic

_PREFIXES = ("spark.sql.catalog.", "spark.icefloe.catalog.")
_DEFAULT = "spark.sql.defaultCatalog"
_SPARKS_OWN = "spark_catalog"
_CATALOG_TYPES = {"jdbccatalog": "sql", "hadoopcatalog": "hadoop", "inmemorycatalog": "memory", "restcatalog": "rest"}
OLDEST_JAVA = 17
_GIB = 1 << 30


def connect(
    catalog: Catalog | str | Iterable[Catalog] | Mapping[str, Catalog] | None = None,
    *,
    spark: SparkSession | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
    drop_in: bool = False,
) -> Session:
    """A session on your catalogs and your Spark, or on an embedded default of either.

    Without a catalog, those count that the settings of the session name (`spark.sql.catalog.<name>.*`); if there are none,
    there is one in SQLite, with its tables, in `./icefloe-warehouse` or the folder given. Without a
    `spark` the running session of this process is used, or a local one is started, with `config` over its settings.
    With `drop_in`, Spark's own calls by name find tables of the catalogs, too, until `stop`: `spark.table`, `spark.read`,
    `spark.catalog`, `df.write` and `df.writeTo`.
    """
    if spark is not None and config:
        raise InvalidInputError("config is for a Spark session that connect starts, and one is given; set it there")
    running = SparkSession.getActiveSession() if spark is None else spark
    existing = running if not config else None
    catalogs = _catalogs(catalog, warehouse, existing)
    spark = local_spark(config or {}) if existing is None else existing
    register_format(spark, catalogs)
    session = Session(spark, catalogs, owns_spark=running is None, drop_in=drop_in)
    session.take_default()
    return session


def _catalogs(
    catalog: Catalog | str | Iterable[Catalog] | Mapping[str, Catalog] | None,
    warehouse: str | os.PathLike[str] | None,
    spark: SparkSession | None,
) -> dict[str, Catalog]:
    match catalog:
        case None:
            if warehouse is None and spark is not None and is_classic(spark):
                named = catalogs_in(dict(spark.sparkContext.getConf().getAll()))
                if named:
                    return {name: load_catalog(name, **properties) for name, properties in named.items()}
            return {EMBEDDED_CATALOG: embedded_catalog(warehouse)}
        case str():
            return {catalog: load_catalog(catalog)}
        case Catalog():
            return {catalog.name: catalog}
        case Mapping():
            catalogs = dict(catalog)
        case _:
            catalogs = {one.name: one for one in catalog}
    if not catalogs or not all(isinstance(value, Catalog) for value in catalogs.values()):
        raise InvalidInputError(
            f"{catalog!r:.100} is not a catalog; give the result of load_catalog, or a mapping of several by name"
        )
    return catalogs


def catalogs_in(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The properties of each catalog by its name; the session's default catalog comes first.

    A catalog counts if its class is Iceberg's, or if the settings are ours; `catalog-impl` says the type where it is one
    that we have, too.
    """
    catalogs: dict[str, dict[str, str]] = {}
    classes: dict[str, str] = {}
    for key, value in settings.items():
        prefix = next((known_prefix for known_prefix in _PREFIXES if key.startswith(known_prefix)), None)
        if prefix is None:
            continue
        name, _, rest = key.removeprefix(prefix).partition(".")
        if rest:
            catalogs.setdefault(name, {})[rest] = value
        else:
            classes[name] = value
    known = {
        name: _with_type(name, properties)
        for name, properties in catalogs.items()
        if name != _SPARKS_OWN and ("iceberg" in classes.get(name, "iceberg").lower())
    }
    first = settings.get(_DEFAULT)
    return dict(sorted(known.items(), key=lambda item: item[0] != first))


def _with_type(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    typed = dict(properties)
    implementation = typed.pop("catalog-impl", None)
    if implementation is None or "type" in typed:
        return typed
    catalog_type = _CATALOG_TYPES.get(implementation.rpartition(".")[2].lower())
    if catalog_type is None:
        raise InvalidPropertyError(
            f"catalog {name!r} is of class {implementation}, which only the Java library has; set `type` to rest, sql or hadoop"
        )
    return {"type": catalog_type, **typed}


def local_spark(config: Mapping[str, str]) -> SparkSession:
    """A quiet local Spark session on all processors, with half of the memory, at most 8 GiB."""
    check_java()
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "icefloe",
        "spark.driver.memory": f"{_sensible_memory()}g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        **config,
    }
    # Workers must be this Python, with what is installed here, and not any that is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _sensible_memory() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 2
    return max(1, min(8, total // 2 // _GIB))


def check_java() -> None:
    """Raise a clear error if Spark's Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = None if program is None else java_version(program)
    if version is None:
        raise NotInstalledError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none"
            f"{f' in JAVA_HOME, {home}' if home else ' on the path'}; install one, or set JAVA_HOME"
        )
    if version < OLDEST_JAVA:
        raise NotInstalledError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and {program} is Java {version}; install one, or set JAVA_HOME"
        )


def java_version(program: str) -> int | None:
    """The major version of a Java program; None if it is not Java."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return None if match is None else int(match[1])
