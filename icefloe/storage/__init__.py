"""One small protocol for files, over the local disk, memory, object stores and HDFS."""

from icefloe.storage.identities import identities, identity, is_same_file, possible_identity
from icefloe.storage.local import check_regular
from icefloe.storage.locations import (
    absolute_location,
    is_beneath,
    is_in_no_store,
    names_below,
    parse_location,
    same_location,
)
from icefloe.storage.properties import redacted
from icefloe.storage.protocol import FileInfo, Input, OutputStream
from icefloe.storage.signing import Sign, SignedRequest, SignRequest
from icefloe.storage.storage import Storage
from icefloe.storage.streams import prefetch
from icefloe.storage.vended import StorageCredential, VendedCredentials
