"""`icefloe.connect`: a session on given catalogs and a given Spark, or on an embedded default of either."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import InvalidInputError
from icefloe.spark.data_source import register_format
from icefloe.spark.local_spark import local_spark
from icefloe.spark.reading import is_classic
from icefloe.spark.session import Session
from icefloe.spark.settings import catalogs_in

DEFAULT_WAREHOUSE = "icefloe-warehouse"
DEFAULT_CATALOG = "icefloe"


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
    given = running if not config else None
    catalogs = _catalogs(catalog, warehouse, given)
    used = local_spark(config or {}) if given is None else given
    register_format(used, catalogs)
    session = Session(used, catalogs, owns_spark=running is None, drop_in=drop_in)
    session.take_default()
    return session


def _catalogs(
    catalog: Catalog | str | Iterable[Catalog] | Mapping[str, Catalog] | None,
    warehouse: str | os.PathLike[str] | None,
    spark: SparkSession | None,
) -> dict[str, Catalog]:
    match catalog:
        case None if warehouse is None and spark is not None and is_classic(spark) and (named := _named(spark)):
            return named
        case None:
            return {DEFAULT_CATALOG: _embedded(warehouse)}
        case str():
            return {catalog: load_catalog(catalog)}
        case Catalog():
            return {catalog.name: catalog}
        case Mapping():
            catalogs = dict(catalog)
        case _:
            catalogs = {one.name: one for one in catalog}
    if not catalogs or not all(isinstance(value, Catalog) for value in catalogs.values()):
        raise InvalidInputError(f"{catalog!r:.100} is no catalog; give one of load_catalog, or several by name")
    return catalogs


def _named(spark: SparkSession) -> dict[str, Catalog]:
    settings = dict(spark.sparkContext.getConf().getAll())
    return {name: load_catalog(name, **properties) for name, properties in catalogs_in(settings).items()}


def _embedded(warehouse: str | os.PathLike[str] | None) -> Catalog:
    folder = Path(DEFAULT_WAREHOUSE if warehouse is None else warehouse).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return load_catalog(DEFAULT_CATALOG, type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder))
