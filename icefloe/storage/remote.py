"""Decides which store a location outside of this machine is in; its client is imported when the first such location is met."""

from collections.abc import Mapping

from icefloe.storage import azure, gcs, hadoop, s3
from icefloe.storage.locations import Location
from icefloe.storage.objects import ObjectFiles
from icefloe.storage.protocol import Files
from icefloe.storage.signed import open_signed_bucket
from icefloe.storage.signing import Sign, signs_remotely
from icefloe.storage.vended import Grant


def open_remote(location: Location, properties: Mapping[str, str], grant: Grant | None, sign: Sign | None) -> Files:
    """The files of a bucket, container or name node."""
    match location.scheme:
        case "s3" if sign is not None and signs_remotely(properties):
            return open_signed_bucket(location.authority, properties, sign)
        case "s3":
            return ObjectFiles(s3.open_bucket(location.authority, properties, grant))
        case "gs":
            return ObjectFiles(gcs.open_bucket(location.authority, properties, grant))
        case "abfs":
            return ObjectFiles(azure.open_container(location.authority, properties, grant))
        case "hdfs":
            return hadoop.open_name_node(location.authority, properties)
        case _:
            raise AssertionError(f"scheme {location.scheme!r} is parsed but has no store")
