"""Tables whose catalog vends credentials, on Spark: refreshed on executors, and used by Spark's own reader where they last."""

import shutil
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import StateError
from icefloe.spark import hadoop_access
from icefloe.spark.connect import connect
from icefloe.storage import Storage, StorageCredential, VendedCredentials
from tests.spark.sessions import settings
from tests.storage.servers import S3Server
from tests.storage.test_vended import keys

MOUNTS = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
"""A file system that serves any scheme from local folders: it stands in for Hadoop's S3A, which is not in Spark."""


@dataclass(frozen=True)
class Clock:
    """A catalog that vends tokens which say when they expire."""

    prefix: str
    seconds: float

    def __call__(self) -> Sequence[StorageCredential]:
        return [keys(self.prefix, f"{time.time() + self.seconds}", self.seconds)]


def catalog_of(server: S3Server, place: str, tmp_path: Path, storage: Storage) -> Catalog:
    catalog = load_catalog(
        "store", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=place, **server.properties()
    )
    catalog.create_namespace("db")
    catalog._storage = storage
    return catalog


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_executors_refresh_credentials_by_themselves(spark: Any, s3_server: S3Server, tmp_path: Path) -> None:
    place = f"s3://{s3_server.new_bucket()}/house"
    issuer = Clock(place, 5.0)
    storage = Storage({"s3.endpoint": s3_server.endpoint}, VendedCredentials(issuer(), issuer))
    ice = connect(catalog_of(s3_server, place, tmp_path, storage), spark=spark)
    s3_server.requests.clear()
    s3_server.judge = lambda path, token: None if token and time.time() < float(token) + 0.5 else "ExpiredToken"
    try:
        rows = ice.spark.range(0, 40, 1, 2).selectExpr("id", "concat('v', id) v")
        ice.write(rows).to("db.t").create()
        until = time.time() + 6
        while time.time() < until:
            assert sorted(row["id"] for row in ice.table("db.t").collect()) == list(range(40))
    finally:
        s3_server.judge = lambda path, token: None
    assert len({token for _, _, token in s3_server.requests}) > 2


@pytest.mark.timeout(300)
def test_sparks_own_reader_uses_credentials_that_last(
    spark: Any, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.new_bucket()
    place = f"s3a://{bucket}/house"
    lasting = VendedCredentials([keys(place, "tOkEn-that-lasts")])
    catalog = catalog_of(s3_server, place, tmp_path, Storage({"s3.endpoint": s3_server.endpoint}, lasting))
    ice = connect(catalog, spark=spark)
    ice.write(ice.spark.range(0, 40, 1, 2).selectExpr("id")).to("db.t").create()
    # Without S3A there is only Arrow.
    assert ice.table("db.t").count() == 40
    with pytest.raises(StateError, match="knows no file system for s3a"):
        ice.table("db.t", options={"read.engine": "native"})
    local = tmp_path / "local"
    for info in catalog.storage.list_prefix(place):
        target = local / info.location.removeprefix(f"{place}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(catalog.storage.read(info.location))
    monkeypatch.setattr(hadoop_access, "S3A", MOUNTS)
    mounts = {
        "fs.s3a.impl": MOUNTS,
        f"fs.viewfs.mounttable.{bucket}.link./house": f"file://{local}",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }
    with settings(spark, mounts):
        frame = ice.table("db.t")
        s3_server.requests.clear()
        shown = StringIO()
        with redirect_stdout(shown):
            frame.explain("extended")
        assert "native" in shown.getvalue()
        assert frame.count() == 40
        options = _options(frame)
        assert options[f"fs.s3a.bucket.{bucket}.session.token"] == "tOkEn-that-lasts"
        assert options[f"fs.s3a.bucket.{bucket}.endpoint"] == s3_server.endpoint
        assert options["fs.s3a.impl.disable.cache"] == "true"
        everything = [
            shown.getvalue(),
            str(spark.sparkContext.getConf().getAll()),
            str(spark.sql("SET -v").collect()),
            str(frame._jdf.queryExecution().toString()),
            str(frame._jdf.queryExecution().analyzed().toJSON()),
        ]
        assert not any("tOkEn-that-lasts" in text for text in everything)
        shutil.rmtree(local)
        lasting._current.put([keys(place, "t2", 3600)])
        # They might expire while a job runs, so that Arrow reads, unless the user insists.
        assert ice.table("db.t").count() == 40
        insisting = ice.table("db.t", options={"read.engine": "native"})
        assert "s3a" in _options(insisting)[f"fs.s3a.bucket.{bucket}.aws.credentials.provider"]
        lasting._current.put([keys(place, "t3", 1.5)])
        dead = ice.table("db.t", options={"read.engine": "native"})
        time.sleep(1.6)
        with pytest.raises(Exception, match="have expired"):
            dead.count()


def _options(frame: Any) -> dict[str, str]:
    relation = frame._jdf.queryExecution().analyzed().collectLeaves().head().relation()
    pairs = relation.options().toSeq()
    return {str(pairs.apply(index)._1()): str(pairs.apply(index)._2()) for index in range(pairs.size())}


@pytest.mark.parametrize("kind", ["signed", "divided", "google"])
def test_what_hadoop_cannot_be_told_is_for_arrow(spark: Any, s3_server: S3Server, tmp_path: Path, kind: str) -> None:
    bucket = s3_server.new_bucket()
    place = f"s3://{bucket}/house"
    match kind:
        case "signed":
            storage, problem = s3_server.signed_storage(), "signs requests"
        case "divided":
            both = [keys(f"{place}/db", "t1"), keys(f"{place}/db/t/data", "t2")]
            storage, problem = (
                Storage({"s3.endpoint": s3_server.endpoint}, VendedCredentials(both)),
                "within one bucket",
            )
        case _:
            storage = Storage({}, VendedCredentials([StorageCredential("gs://b", {"gcs.oauth2.token": "t"})]))
            from icefloe.metadata import new_table_metadata
            from icefloe.schema import Schema

            elsewhere = new_table_metadata(Schema(), location="gs://b/t", uuid="0" * 32, timestamp_ms=1)
            assert "another store than S3" in str(hadoop_access.why_not_by_hadoop(storage, elsewhere))
            return
    ice = connect(catalog_of(s3_server, place, tmp_path, storage), spark=spark)
    ice.write(ice.spark.range(0, 10, 1, 2).selectExpr("id")).to("db.t").create()
    assert ice.table("db.t").count() == 10
    with pytest.raises(StateError, match=problem):
        ice.table("db.t", options={"read.engine": "native"})
