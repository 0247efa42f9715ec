"""Which key management service the properties of a catalog name: `encryption.kms-type`, or `encryption.kms-impl` for any other."""

import importlib
from collections.abc import Mapping
from functools import partial

from icefloe.encryption.kms.protocol import Kms
from icefloe.errors import InvalidPropertyError, NotInstalledError

KMS_TYPE, KMS_IMPL = "encryption.kms-type", "encryption.kms-impl"
KMS_PREFIXES = ("encryption.", "kms.", "azure.keyvault.", "gcp.kms.", "vault.")
"""How properties begin that are for the service alone: they go neither to storage nor to other processes."""

_OWN = {
    "file": "icefloe.encryption.kms.local_file:FileKms",
    "aws": "icefloe.encryption.kms.amazon:AwsKms",
    "gcp": "icefloe.encryption.kms.google:GoogleKms",
    "azure": "icefloe.encryption.kms.azure:AzureKms",
    "vault": "icefloe.encryption.kms.vault:VaultKms",
}
_EXTRAS = {"aws": "aws", "gcp": "gcp", "azure": "azure"}
_JAVA = {
    "org.apache.iceberg.aws.AwsKeyManagementClient": "aws",
    "org.apache.iceberg.gcp.GcpKeyManagementClient": "gcp",
    "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient": "azure",
}
"""Classes of the Java library that stand for one of ours."""


def kms_of(properties: Mapping[str, str]) -> Kms | None:
    """The service that the properties name; None if they name none."""
    kind, implementation = properties.get(KMS_TYPE), properties.get(KMS_IMPL)
    if kind is not None and implementation is not None:
        raise InvalidPropertyError(f"{KMS_TYPE!r} and {KMS_IMPL!r} exclude each other; set one")
    if implementation is not None:
        kind = _JAVA.get(implementation)
        if kind is None:
            return _made(implementation, properties)
    if kind is None:
        return None
    if kind not in _OWN:
        raise InvalidPropertyError(f"{KMS_TYPE!r} is {kind!r}; it must be one of {', '.join(_OWN)}")
    try:
        return _made(_OWN[kind], properties)
    except ImportError:
        extra = _EXTRAS.get(kind, "encryption")
        raise NotInstalledError(
            f"the KMS {kind!r} needs packages that are missing: pip install 'icefloe[encryption,{extra}]'"
        ) from None


def _made(name: str, properties: Mapping[str, str]) -> Kms:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise InvalidPropertyError(f"{KMS_IMPL!r} is {name!r}; it must be 'module:Class', or one of {', '.join(_JAVA)}")
    if name in _OWN.values():
        service_class = getattr(importlib.import_module(module), attribute)
    else:
        service_class = _imported(module, attribute)
    service: Kms = service_class(dict(properties))
    for method in ("wrap_key", "unwrap_key"):
        if not callable(getattr(service, method, None)):
            raise InvalidPropertyError(f"{KMS_IMPL!r} is {name!r}, which has no method {method!r}")
    return service


def _imported(module: str, attribute: str) -> partial[object] | type[Kms]:
    try:
        service_class: type[Kms] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidPropertyError(
            f"{KMS_IMPL!r} is '{module}:{attribute}', which cannot be imported: {error}"
        ) from error
    return service_class
