"""Key metadata, key-encryption keys and the keys of manifest lists."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from icefloe import metadata as md
from icefloe.encryption import (
    FileKey,
    Keyring,
    decode_key_metadata,
    encode_key_metadata,
    key_length_of,
    sealed_key,
    unneeded_keys,
)
from icefloe.encryption.gcm import KEY_LENGTHS, NotAuthenticError, seal, unseal
from icefloe.encryption.keyring import KEY_LIFETIME_MS
from icefloe.errors import CorruptFileError, EncryptionError
from tests.encryption.keys import CountingKms, encrypted_metadata

PLACE = "s3://b/t/x"
file_keys = st.builds(
    FileKey,
    st.sampled_from(KEY_LENGTHS).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    st.binary(max_size=20),
    st.none() | st.integers(0, 2**62),
)


@given(file_keys)
def test_key_metadata_comes_back(key: FileKey) -> None:
    assert decode_key_metadata(encode_key_metadata(key), PLACE) == key


def test_the_bytes_of_key_metadata() -> None:
    key = FileKey(b"0123456789012345", b"1234567890123456")
    start = "01 20 30313233343536373839303132333435 02 20 31323334353637383930313233343536"
    assert encode_key_metadata(key) == bytes.fromhex(f"{start} 00")
    assert encode_key_metadata(key.of_length(1234)) == bytes.fromhex(f"{start} 02 a413")


@given(file_keys, st.data())
def test_broken_key_metadata_is_refused_and_never_quoted(key: FileKey, data: st.DataObject) -> None:
    encoded = encode_key_metadata(key)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(CorruptFileError) as caught:
        decode_key_metadata(cut, PLACE)
    assert key.key.hex() not in str(caught.value)
    assert repr(key.key) not in str(caught.value)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_key_or_an_error(data: bytes) -> None:
    try:
        key = decode_key_metadata(data, PLACE)
    except CorruptFileError:
        return
    assert len(key.key) in KEY_LENGTHS


def test_other_versions_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="version 2"):
        decode_key_metadata(b"\x02" + bytes(40), PLACE)


def test_keys_are_not_shown() -> None:
    key = FileKey.new(16)
    assert repr(key) == "FileKey(file_length=None)"
    with pytest.raises(EncryptionError, match="17 bytes"):
        FileKey(bytes(17))


@pytest.mark.parametrize("length", KEY_LENGTHS)
def test_the_way_from_the_kms_to_a_list_and_back(length: int) -> None:
    kms = CountingKms()
    ring, metadata = Keyring(kms), encrypted_metadata({"encryption.data-key-length": str(length)})
    assert key_length_of(metadata) == length
    assert ring.wrapping_key(metadata, 0) is None
    wrapping = ring.new_wrapping_key(metadata, 1000)
    assert len(wrapping.key) == length
    key = FileKey.new(length).of_length(99)
    entry = sealed_key(key, wrapping)
    assert (entry.encrypted_by_id, dict(entry.properties)) == (wrapping.entry.key_id, {})
    assert (wrapping.entry.encrypted_by_id, dict(wrapping.entry.properties)) == ("k1", {"KEY_TIMESTAMP": "1000"})
    with_keys = metadata.evolve(encryption_keys=(wrapping.entry, entry))
    snapshot = md.Snapshot(1, 1, manifest_list="s3://b/t/snap", key_id=entry.key_id)
    for _ in range(3):
        assert ring.list_key(with_keys, snapshot) == key
    assert kms.unwrapped == 1, "unwrapped keys are kept for an hour"
    found = ring.wrapping_key(with_keys, 2000)
    assert found == wrapping
    assert wrapping.key.hex() not in repr(wrapping)
    assert repr(wrapping.key) not in repr(wrapping)


def test_unwrapped_keys_are_forgotten_after_an_hour() -> None:
    kms, now = CountingKms(), [0.0]
    ring, metadata = Keyring(kms, lambda: now[0]), encrypted_metadata()
    wrapping = ring.new_wrapping_key(metadata, 0)
    metadata = metadata.evolve(encryption_keys=(wrapping.entry,))
    for seconds, asked in ((0, 1), (3599, 1), (3601, 2)):
        now[0] = seconds
        ring.wrapping_key(metadata, 0)
        assert kms.unwrapped == asked


def test_keys_are_replaced_after_two_years_and_old_ones_stay() -> None:
    ring, metadata = Keyring(CountingKms()), encrypted_metadata()
    old = ring.new_wrapping_key(metadata, 1000)
    metadata = metadata.evolve(encryption_keys=(old.entry,))
    assert ring.wrapping_key(metadata, 1000 + KEY_LIFETIME_MS - 1) == old
    assert ring.wrapping_key(metadata, 1000 + KEY_LIFETIME_MS) is None
    new = ring.new_wrapping_key(metadata, 1000 + KEY_LIFETIME_MS)
    both = metadata.evolve(encryption_keys=(old.entry, new.entry))
    assert ring.wrapping_key(both, 1000 + KEY_LIFETIME_MS) == new


def test_a_key_that_was_exchanged_or_is_missing_is_an_error() -> None:
    ring, metadata = Keyring(CountingKms()), encrypted_metadata()
    wrapping, other = ring.new_wrapping_key(metadata, 1), ring.new_wrapping_key(metadata, 1)
    entry = sealed_key(FileKey.new(16), wrapping)
    snapshot = md.Snapshot(7, 1, manifest_list="s3://b/t/snap", key_id=entry.key_id)
    later = replace(wrapping.entry, properties={"KEY_TIMESTAMP": "2"})
    moved = replace(entry, encrypted_by_id=other.entry.key_id)
    for keys in ((later, entry), (other.entry, moved), (replace(other.entry, key_id=wrapping.entry.key_id), entry)):
        with pytest.raises(EncryptionError, match="snapshot 7"):
            ring.list_key(metadata.evolve(encryption_keys=keys), snapshot)
    for lost in ((entry,), (wrapping.entry,), ()):
        with pytest.raises(EncryptionError, match="does not have"):
            ring.list_key(metadata.evolve(encryption_keys=lost), snapshot)
    undated = replace(wrapping.entry, properties={})
    with pytest.raises(EncryptionError, match="KEY_TIMESTAMP"):
        ring.list_key(metadata.evolve(encryption_keys=(undated, entry)), snapshot)


def test_a_table_that_lost_its_key_id_is_not_written_in_clear() -> None:
    ring, metadata = Keyring(CountingKms()), encrypted_metadata()
    wrapping = ring.new_wrapping_key(metadata, 1)
    with pytest.raises(EncryptionError, match="in clear"):
        key_length_of(metadata.evolve(properties={}, encryption_keys=(wrapping.entry,)))
    assert key_length_of(metadata.evolve(properties={})) is None


def test_what_a_kms_says_in_its_errors_is_not_passed_on() -> None:
    class Talkative(CountingKms):
        def wrap_key(self, key: bytes, key_id: str) -> bytes:
            raise RuntimeError(f"no: {key.hex()}")

        def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
            return b"short"

    ring, metadata = Keyring(Talkative()), encrypted_metadata()
    with pytest.raises(EncryptionError, match=r"did not wrap a key with key 'k1': RuntimeError$"):
        ring.new_wrapping_key(metadata, 1)
    entry = md.EncryptedKey("a", b"wrapped", "k1", {"KEY_TIMESTAMP": "1"})
    with pytest.raises(EncryptionError, match="no key"):
        ring.wrapping_key(metadata.evolve(encryption_keys=(entry,)), 1)


def test_only_keys_of_lists_that_are_gone_are_unneeded() -> None:
    ring, metadata = Keyring(CountingKms()), encrypted_metadata()
    wrapping = ring.new_wrapping_key(metadata, 1)
    one, two = (sealed_key(FileKey.new(16), wrapping) for _ in range(2))
    snapshots = tuple(
        md.Snapshot(number, number, manifest_list=f"s3://b/t/{number}", key_id=entry.key_id)
        for number, entry in ((1, one), (2, two))
    )
    metadata = metadata.evolve(encryption_keys=(wrapping.entry, one, two), snapshots=snapshots)
    assert unneeded_keys(metadata, [1]) == (one.key_id,)
    assert unneeded_keys(metadata, []) == ()


@given(st.binary(max_size=100), st.binary(max_size=9), st.data())
def test_sealed_bytes(plain: bytes, aad: bytes, data: st.DataObject) -> None:
    key = bytes(range(16))
    sealed = bytearray(seal(key, plain, aad))
    assert unseal(key, bytes(sealed), aad) == plain
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= 1
    with pytest.raises(NotAuthenticError):
        unseal(key, bytes(sealed), aad)


def test_file_keys_travel() -> None:
    key = FileKey.new(24)
    assert pickle.loads(pickle.dumps(key)) == key
