"""The services that keep the keys of tables (KMS): which one a catalog's properties name, and what each is asked."""

from icefloe.encryption.kms.choice import KMS_PREFIXES, kms_of
from icefloe.encryption.kms.protocol import Kms
