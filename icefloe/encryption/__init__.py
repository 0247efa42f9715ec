"""Table encryption: keys and what they open, AES GCM streams, and the services that keep the keys of tables."""

from icefloe.encryption.file_keys import FileKey
from icefloe.encryption.gcm import KEY_LENGTHS
from icefloe.encryption.key_metadata_codec import decode_key_metadata, encode_key_metadata
from icefloe.encryption.keyed_files import KeyedInput, KeyedSink
from icefloe.encryption.keyring import (
    Keyring,
    WrappingKey,
    key_length_of,
    sealed_key,
    statistics_key_id,
    unneeded_keys,
)
from icefloe.encryption.kms import KMS_PREFIXES, Kms, kms_of
from icefloe.encryption.streams import SealingSink, UnsealedInput, open_stream, seal_stream
