"""Files of S3 through requests that a catalog signs: which of them it is asked for, and what a failure means."""

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from icefloe.errors import (
    ForbiddenError,
    InvalidPropertyError,
    LocationExistsError,
    LocationNotFoundError,
    NothingStoredError,
    StorageError,
)
from icefloe.storage import SignedRequest, SignRequest, Storage, signing
from icefloe.storage.s3_codec import decode_deletion, encode_deletion
from tests.storage.servers import ACCESS_KEY, SECRET, KeyHolder, S3Server


@dataclass
class Asked:
    """A catalog that signs, and remembers what it was asked."""

    answer: Callable[[SignRequest], SignedRequest] = field(default_factory=KeyHolder)
    requests: list[SignRequest] = field(default_factory=list)

    def __call__(self, request: SignRequest) -> SignedRequest:
        self.requests.append(request)
        return self.answer(request)

    def methods(self) -> list[str]:
        asked = [request.method for request in self.requests]
        self.requests.clear()
        return asked


def storage_of(
    server: S3Server, sign: Callable[[SignRequest], SignedRequest], more: dict[str, str] | None = None
) -> Storage:
    properties = {"s3.endpoint": server.endpoint, "s3.region": "us-east-1", "s3.remote-signing-enabled": "true"}
    properties |= {"s3.retry.min-wait-ms": "1", "s3.retry.max-wait-ms": "5"}
    return Storage({**properties, **(more or {})}, sign=sign)


def test_the_server_of_these_tests_tells_right_from_wrong_signatures(strict_s3_server: S3Server) -> None:
    bucket = strict_s3_server.new_bucket()
    strict_s3_server.storage().write(f"s3://{bucket}/a b+c", b"x")
    wrong = {**strict_s3_server.properties(), "s3.secret-access-key": "another"}
    with pytest.raises(StorageError, match="SignatureDoesNotMatch"):
        Storage(wrong).write(f"s3://{bucket}/x", b"x")
    asked = Asked(lambda request: KeyHolder()(replace(request, uri=f"{request.uri}x")))
    storage = storage_of(strict_s3_server, lambda request: replace(asked(request), uri=request.uri))
    with pytest.raises(StorageError, match="refused access, though the catalog signed"):
        storage.write(f"s3://{bucket}/x", b"x")


def test_a_signature_is_used_for_all_ranges_of_a_file_and_not_for_writes(strict_s3_server: S3Server) -> None:
    asked = Asked()
    storage, location = storage_of(strict_s3_server, asked), f"s3://{strict_s3_server.new_bucket()}/x"
    storage.write(location, bytes(1000))
    storage.write(location, bytes(2000))
    assert asked.methods() == ["PUT", "PUT"]
    assert storage.read_range(location, 10, 10) == bytes(10)
    assert storage.read_range(location, 100, 10) == bytes(10)
    assert storage.read_tail(location, 8).size == 2000
    storage.stat(location)
    storage.stat(location)
    assert asked.methods() == ["GET", "HEAD"]
    asked.answer = KeyHolder(is_reusable=False)
    other = storage_of(strict_s3_server, asked)
    other.read(location)
    other.read(location)
    assert asked.methods() == ["GET", "GET"]


def test_kept_signatures_are_few_and_not_old(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(lambda request: SignedRequest(request.uri, {}, True))
    signatures = signing.Signatures(asked)
    requests = [SignRequest("GET", "r", f"http://h/{number}", {}) for number in range(101)]
    for request in (*requests, requests[-1]):
        signatures.of(request)
    assert len(asked.methods()) == 101
    signatures.of(requests[0])
    signatures.of(replace(requests[0], region="other"))
    assert len(asked.methods()) == 2
    now = time.monotonic()
    monkeypatch.setattr(signing.time, "monotonic", lambda: now + 31)
    signatures.of(requests[0])
    assert len(asked.methods()) == 1


def test_a_kept_signature_that_the_store_refuses_is_replaced_once(s3_server: S3Server) -> None:
    asked = Asked()
    storage, location = storage_of(s3_server, asked), f"s3://{s3_server.new_bucket()}/x"
    storage.write(location, b"x")
    storage.read(location)
    asked.methods()
    left = iter([True, False])
    s3_server.judge = lambda path, token: "AccessDenied" if next(left) else None
    try:
        assert storage.read(location) == b"x"
        assert asked.methods() == ["GET"]
        s3_server.judge = lambda path, token: "AccessDenied"
        with pytest.raises(StorageError, match="403 AccessDenied"):
            storage.read(location)
    finally:
        s3_server.judge = lambda path, token: None
    assert asked.methods() == ["GET"]


def test_the_catalog_sees_what_it_must_check(s3_server: S3Server) -> None:
    asked = Asked()
    storage, bucket = storage_of(s3_server, asked, {"s3.sse.type": "s3"}), s3_server.new_bucket()
    storage.write(f"s3://{bucket}/a b/x&y", b"x")
    write = asked.requests.pop()
    assert write.uri == f"{s3_server.endpoint}/{bucket}/a%20b/x%26y"
    assert (write.region, write.body) == ("us-east-1", None)
    assert write.headers == {"x-amz-server-side-encryption": ["AES256"]}
    storage.delete([f"s3://{bucket}/a b/x&y", f"s3://{bucket}/<b>"])
    deletion = asked.requests.pop()
    assert deletion.uri == f"{s3_server.endpoint}/{bucket}/?delete="
    assert deletion.body is not None
    assert decode_deletion(deletion.body.encode()) == ["a b/x&y", "<b>"]
    list(storage.list_prefix(f"s3://{bucket}/a b"))
    listing = asked.requests.pop()
    assert listing.uri == f"{s3_server.endpoint}/{bucket}/?list-type=2&prefix=a%20b%2F"
    storage.write(f"s3://{bucket}/x", b"x")
    storage.read_range(f"s3://{bucket}/x", 0, 1)
    assert asked.requests.pop().headers == {}


def test_what_the_catalog_does_not_sign_is_not_sent(s3_server: S3Server) -> None:
    def refuse(request: SignRequest) -> SignedRequest:
        raise ForbiddenError(f"{request.method} of another's table")

    storage, bucket = storage_of(s3_server, refuse), s3_server.new_bucket()
    s3_server.requests.clear()
    with pytest.raises(StorageError, match="did not sign GET: GET of another's table"):
        storage.read(f"s3://{bucket}/x")
    with pytest.raises(NothingStoredError, match="did not sign PUT"):
        storage.write(f"s3://{bucket}/x", b"")
    failures = storage.delete([f"s3://{bucket}/x", f"s3://{bucket}/y"])
    assert [failure.location for failure in failures] == [f"s3://{bucket}/x", f"s3://{bucket}/y"]
    assert s3_server.requests == []


def test_a_create_whose_answer_is_lost_is_not_taken_for_anothers(strict_s3_server: S3Server) -> None:
    storage, location = storage_of(strict_s3_server, KeyHolder()), f"s3://{strict_s3_server.new_bucket()}/v1"
    assert storage.supports_exclusive_create(location)
    strict_s3_server.requests.clear()
    strict_s3_server.answers_to_lose = 1
    with pytest.raises(StorageError) as caught:
        storage.create_exclusive(location, b"ours")
    assert not isinstance(caught.value, LocationExistsError | NothingStoredError)
    assert [method for method, _, _ in strict_s3_server.requests] == ["PUT"]
    assert storage.read(location) == b"ours"
    with pytest.raises(LocationExistsError):
        storage.create_exclusive(location, b"theirs")


def test_a_store_that_ignores_conditions_is_not_relied_on(s3_server: S3Server) -> None:
    location = f"s3://{s3_server.new_bucket()}/v1"
    s3_server.ignores_conditions = True
    try:
        storage = storage_of(s3_server, KeyHolder())
        with pytest.raises(StorageError, match="exclusively"):
            storage.create_exclusive(location, b"x")
        assert list(storage.list_prefix(location.rpartition("/")[0])) == []
    finally:
        s3_server.ignores_conditions = False


def test_other_requests_are_sent_again(strict_s3_server: S3Server) -> None:
    storage, location = storage_of(strict_s3_server, KeyHolder()), f"s3://{strict_s3_server.new_bucket()}/x"
    strict_s3_server.answers_to_lose = 2
    storage.write(location, b"x")
    strict_s3_server.answers_to_lose = 2
    assert storage.read(location) == b"x"
    strict_s3_server.answers_to_lose = 100
    with pytest.raises(StorageError, match="500"):
        storage.read(location)
    assert strict_s3_server.answers_to_lose == 94
    strict_s3_server.answers_to_lose = 0


def test_a_store_that_is_not_there_is_told(s3_server: S3Server) -> None:
    storage = storage_of(s3_server, KeyHolder(), {"s3.endpoint": "http://127.0.0.1:1", "s3.retry.num-retries": "1"})
    with pytest.raises(StorageError, match="could not be reached"):
        storage.read("s3://bucket1/x")
    with pytest.raises(LocationNotFoundError, match="no such bucket"):
        storage_of(s3_server, KeyHolder()).read("s3://never-made/x")


def test_failed_uploads_leave_no_parts(strict_s3_server: S3Server) -> None:
    storage, bucket = storage_of(strict_s3_server, KeyHolder()), strict_s3_server.new_bucket()
    output = storage.open_output(f"s3://{bucket}/big")
    output.write(bytes(40 << 20))
    output.abort()
    with strict_s3_server.client() as client:
        assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)
    storage.write(f"s3://{bucket}/large", bytes(65 << 20))
    assert storage.stat(f"s3://{bucket}/large").size == 65 << 20


def test_it_can_be_pickled_and_forked(strict_s3_server: S3Server) -> None:
    location = f"s3://{strict_s3_server.new_bucket()}/a//b"
    storage = strict_s3_server.signed_storage()
    storage.write(location, b"x")
    copy = pickle.loads(pickle.dumps(storage))
    assert copy == storage
    assert copy.read(location) == b"x"
    process = os.fork()
    if process == 0:
        os._exit(0 if storage.read(location) == b"x" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert storage.read(location) == b"x"


def test_settings_that_cannot_be_kept_are_refused(s3_server: S3Server) -> None:
    with pytest.raises(InvalidPropertyError, match="remote signing"):
        storage_of(s3_server, KeyHolder(), {"s3.sse.type": "custom", "s3.sse.key": "a2V5"}).read("s3://bucket1/x")
    with pytest.raises(InvalidPropertyError, match="needs a REST catalog"):
        Storage({"s3.remote-signing-enabled": "true"}).read("s3://bucket1/x")


def test_no_credential_is_shown(s3_server: S3Server) -> None:
    storage = storage_of(s3_server, KeyHolder(), {"s3.session-token": "tOkEn-of-mine"})
    location = f"s3://{s3_server.new_bucket()}/x"
    texts = [repr(storage), repr(KeyHolder()(SignRequest("GET", "us-east-1", "http://h/x", {})))]
    s3_server.judge = lambda path, token: "Denied"
    try:
        with pytest.raises(StorageError) as caught:
            storage.read(location)
    finally:
        s3_server.judge = lambda path, token: None
    texts += [str(caught.value), repr(caught.value)]
    assert caught.value.__cause__ is None
    assert not any(secret in text for text in texts for secret in (SECRET, ACCESS_KEY, "tOkEn-of-mine", "Signature="))


@pytest.mark.parametrize(
    "body",
    [
        b"<Delete/>",
        b"<Delete><Object/></Delete>",
        b"<Other/>",
        b"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
    ],
)
def test_a_deletion_that_names_no_keys_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"key|deletion"):
        decode_deletion(body)
    assert decode_deletion(encode_deletion(["a", "<&>"]).encode()) == ["a", "<&>"]
