"""The policy that limits vended credentials to the places of one table, in the language of Amazon's access management.

Names are taken literally: characters that have a meaning in patterns are written as the variables that stand for them.
"""

from collections.abc import Sequence

import msgspec

from icefloe.server.access.places import Place

LONGEST = 2048
"""How many characters a session policy may have."""

_READ = ("s3:GetObject", "s3:GetObjectVersion")
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_READ_KEYS, _WRITE_KEYS = ("kms:Decrypt",), ("kms:Decrypt", "kms:GenerateDataKey")
_MEANINGS = str.maketrans({"*": "${*}", "?": "${?}", "$": "${$}"})


def session_policy(
    places: Sequence[Place], *, may_write: bool, kms_keys: Sequence[str] = (), partition: str = "aws"
) -> str:
    """What may be done with the places, and nothing else: read, list and, perhaps, write."""
    buckets = sorted({place.bucket for place in places})
    arn = f"arn:{partition}:s3:::"
    objects = [f"{arn}{place.bucket}/{literal(place.prefix)}*" for place in places]
    statements: list[dict[str, object]] = [
        _allow((*_READ, *(_WRITE if may_write else ())), objects),
        *(
            _allow(("s3:ListBucket",), [f"{arn}{bucket}"], [place for place in places if place.bucket == bucket])
            for bucket in buckets
        ),
    ]
    if kms_keys:
        statements.append(_allow(_WRITE_KEYS if may_write else _READ_KEYS, list(kms_keys)))
    return msgspec.json.encode({"Version": "2012-10-17", "Statement": statements}).decode()


def literal(text: str) -> str:
    """A text as a pattern that matches it alone."""
    return text.translate(_MEANINGS)


def _allow(actions: Sequence[str], resources: Sequence[str], listed: Sequence[Place] = ()) -> dict[str, object]:
    statement: dict[str, object] = {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    if listed:
        statement["Condition"] = {"StringLike": {"s3:prefix": [f"{literal(place.prefix)}*" for place in listed]}}
    return statement
