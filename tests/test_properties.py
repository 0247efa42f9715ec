"""Table properties: defaults, typed reading, and refusals that name key and value."""

import pytest
from hypothesis import given, strategies as st

from icefloe import properties as p
from icefloe.errors import InvalidPropertyError, UnsupportedVersionError
from icefloe.versions import ALL_VERSIONS, DEFAULT_VERSION, Feature, allows

KNOWN = {name: value for name, value in vars(p).items() if isinstance(value, p.Property)}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_every_property_has_its_default(known: p.Property[object]) -> None:
    assert known.of({}) == known.default
    assert known.of({known.key + ".other": "x"}) == known.default


def test_keys_are_unique() -> None:
    assert len({known.key for known in KNOWN.values()}) == len(KNOWN)


@pytest.mark.parametrize(
    "known", [each for each in KNOWN.values() if each.default is not None], ids=lambda each: each.key
)
def test_the_text_of_a_default_reads_as_the_default(known: p.Property[object]) -> None:
    text = str(known.default).lower() if isinstance(known.default, bool) else str(known.default)
    assert known.of({known.key: text}) == known.default


@pytest.mark.parametrize(
    "known", [each for each in KNOWN.values() if isinstance(each.default, int)], ids=lambda each: each.key
)
@pytest.mark.parametrize("text", ["", "x", "1.5", "1_000", "0x10", "9" * 30, "9" * 5000, "--1", "٣"])
def test_numbers_that_are_none(known: p.Property[int], text: str) -> None:
    with pytest.raises(InvalidPropertyError, match=rf"{known.key}'? is '{text[:20]}"):
        known.of({known.key: text})


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers(number: int) -> None:
    assert p.property_as_long({"k": f" {number} "}, "k", 0) == number
    if -(2**31) <= number < 2**31:
        assert p.property_as_int({"k": str(number)}, "k", 0) == number
    else:
        with pytest.raises(InvalidPropertyError, match="'k'"):
            p.property_as_int({"k": str(number)}, "k", 0)


def test_numbers_have_a_range() -> None:
    with pytest.raises(InvalidPropertyError, match="from 0"):
        p.COMMIT_NUM_RETRIES.of({p.COMMIT_NUM_RETRIES.key: "-1"})
    assert p.property_as_int({"k": "+7"}, "k", 0) == 7


def test_booleans() -> None:
    assert p.property_as_bool({"k": "TRUE"}, "k", False) is True
    assert p.property_as_bool({"k": "false"}, "k", True) is False
    with pytest.raises(InvalidPropertyError, match="'k' is 'yes'; it must be true or false"):
        p.property_as_bool({"k": "yes"}, "k", True)


def test_floats_texts_and_words() -> None:
    assert p.property_as_float({"k": "0.25"}, "k", 1.0) == 0.25
    assert p.property_as_float({}, "k", 1.0) == 1.0
    with pytest.raises(InvalidPropertyError, match="'k' is 'much'"):
        p.property_as_float({"k": "much"}, "k", 1.0)
    assert p.DELETE_MODE.of({"write.delete.mode": "Merge-On-Read"}) == "merge-on-read"
    with pytest.raises(InvalidPropertyError, match=r"write\.delete\.mode.*'fast'.*copy-on-write, merge-on-read"):
        p.DELETE_MODE.of({"write.delete.mode": "fast"})
    assert p.DISTRIBUTION_MODE.of({"write.distribution-mode": "HASH"}) == "hash"
    with pytest.raises(InvalidPropertyError, match=r"write\.distribution-mode"):
        p.DISTRIBUTION_MODE.of({"write.distribution-mode": "x"})


def test_reserved_keys() -> None:
    for key in p.RESERVED:
        with pytest.raises(InvalidPropertyError, match=key):
            p.refuse_reserved(["a", key])
    p.refuse_reserved(["a"])


@pytest.mark.parametrize("key", ["format_version", "FORMAT-VERSION", "format-verison", "current-shema"])
def test_keys_that_are_almost_reserved(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match=f"'{key}' resembles '.*', which is reserved"):
        p.refuse_misspelt(["a", key])
    # Those that are reserved are another's to refuse; and not everything that has a word of them is meant so.
    p.refuse_misspelt(
        [*p.RESERVED, "version", "schema", "uid", "my-format-version", "sort-order", "write.format.default"]
    )


def test_the_version_that_properties_ask_for() -> None:
    assert p.requested_version({}) == DEFAULT_VERSION
    for version in ALL_VERSIONS:
        assert p.requested_version({"format-version": str(version)}) == version
    assert p.requested_version({}, default=4) == 4
    with pytest.raises(UnsupportedVersionError, match="format-version"):
        p.requested_version({"format-version": "9"})
    with pytest.raises(InvalidPropertyError, match="format-version"):
        p.requested_version({"format-version": "newest"})


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("key", ["encryption.key-id", "encryption.data-key-length"])
def test_encryption_needs_a_version_with_keys(version: int, key: str) -> None:
    if allows(version, Feature.ENCRYPTION_KEYS):
        p.check_new_table_properties({key: "16"}, version)
    else:
        with pytest.raises(UnsupportedVersionError, match=key):
            p.check_new_table_properties({key: "16"}, version)
