"""How keys of encrypted files get to Spark's own reader: sealed for the JVM that plans the query.

py4j logs what goes through it, where somebody wants to see that. So a key is sealed by a secret that this process and the JVM
agree on (X25519), and is opened there by icefloe/spark/jvm/scan_index.java. Executors get it with their task.
"""

import hashlib
from collections.abc import Callable

from py4j.java_gateway import JavaObject

from icefloe.encryption.gcm import seal
from icefloe.errors import CorruptFileError, EncryptionError
from icefloe.manifests import key_of_file
from icefloe.planning import FileScanTask


def sender_of_keys(index: JavaObject) -> Callable[[FileScanTask], bytes]:
    """What gives the key of a task's file, sealed for the JVM of an entry of scan_index."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    receiver = forms.load_der_public_key(bytes(index.publicKey()))
    if not isinstance(receiver, X25519PublicKey):
        raise EncryptionError("the JVM of Spark has a key of another kind than X25519 for what is sent to it")
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes(forms.Encoding.DER, forms.PublicFormat.SubjectPublicKeyInfo)
    shared = hashlib.sha256(own.exchange(receiver)).digest()

    def send(task: FileScanTask) -> bytes:
        key = key_of_file(task.file)
        if key.file_length != task.file.file_size_in_bytes:
            raise CorruptFileError(
                task.file.file_path,
                f"its key says {key.file_length} bytes, its manifest {task.file.file_size_in_bytes}",
            )
        return public + seal(shared, bytes([len(key.key)]) + key.key + key.aad_prefix)

    return send
