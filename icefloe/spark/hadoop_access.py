"""How Spark's own reader gets at files for which a catalog vends credentials: by Hadoop settings of the relation alone.

Settings of a relation reach its reader on every executor, and no one else: they are neither in the session nor in what Spark
shows of its configuration or plans. Hadoop's S3A takes one identity for a bucket, and keeps it as long as a job runs; so
credentials that differ within a bucket, or that may not outlive the job, are for the arrow engine, which refreshes them, and
so are requests that a catalog signs. Writes take long, too, and go through Arrow.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe import errors, metadata as md
from icefloe.storage import Storage, parse_location

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PROVIDERS = "org.apache.hadoop.fs.s3a"
_LONGEST_JOB = 6 * 3600.0
"""Seconds that a job is expected to take at most."""


@dataclass(frozen=True, slots=True)
class HadoopAccess:
    """Hadoop settings of a relation, and until when they are good."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    expires_at: float = float("inf")

    def check(self) -> None:
        """Fail if the settings are of no use any more."""
        if time.time() >= self.expires_at:
            raise errors.StateError(
                "the credentials that the catalog vended for this DataFrame have expired; make the DataFrame again, or leave"
                " out read.engine=native: the arrow engine refreshes them"
            )


def why_not_by_hadoop(storage: Storage, metadata: md.TableMetadata) -> str | None:
    """Why Hadoop cannot get at the files of a table as its catalog says; None if it can, or if the catalog says nothing."""
    location = metadata.location
    if location is None:
        return None
    if storage.is_signed(location):
        return "the catalog signs requests to its store, which Hadoop cannot have done"
    if storage.vended(location) is None:
        return None
    if parse_location(location).scheme != "s3":
        return "the catalog vends credentials of another store than S3"
    return "the catalog vends different credentials within one bucket" if storage.is_divided(location) else None


def is_short_lived(storage: Storage, metadata: md.TableMetadata) -> bool:
    """Whether vended credentials may expire while a job reads with them."""
    credential = None if metadata.location is None else storage.vended(metadata.location)
    return credential is not None and credential.expires_at < time.time() + _LONGEST_JOB


def is_vended(storage: Storage, metadata: md.TableMetadata) -> bool:
    """Whether a catalog decides how the files of a table are reached."""
    location = metadata.location
    return location is not None and (storage.is_signed(location) or storage.vended(location) is not None)


def hadoop_access(storage: Storage, metadata: md.TableMetadata) -> HadoopAccess:
    """What Hadoop must be told for the files of a table; nothing if no catalog vends credentials for them."""
    credential = None if metadata.location is None else storage.vended(metadata.location)
    if credential is None or metadata.location is None:
        return HadoopAccess()
    place = parse_location(metadata.location)
    scheme = place.root.partition(":")[0].lower()
    given = {**storage.properties, **credential.config}
    region = given.get("s3.region") or given.get("client.region")
    endpoint = given.get("s3.endpoint")
    path_style = given.get("s3.path-style-access") or ("true" if endpoint else None)
    token = credential.config.get("s3.session-token")
    provider = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
    own = {
        "access.key": credential.config.get("s3.access-key-id"),
        "secret.key": credential.config.get("s3.secret-access-key"),
        "session.token": token,
        "aws.credentials.provider": f"{_PROVIDERS}.{provider}",
        "endpoint": endpoint,
        "endpoint.region": region,
        "path.style.access": path_style,
    }
    settings = {f"fs.s3a.bucket.{place.authority}.{key}": value for key, value in own.items() if value}
    # A file system that is kept for the bucket would keep its identity, too.
    settings |= {f"fs.{scheme}.impl": S3A, f"fs.{scheme}.impl.disable.cache": "true"}
    return HadoopAccess(settings, credential.expires_at)
