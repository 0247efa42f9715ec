"""Damaged files of every kind: a value or an error of ours comes out, soon, and without much memory."""

import random
import resource
import time

import pytest

from tests.hostile.samples import Sample, damaged, outcome, reshaped, samples

ATTEMPTS = 60
MOST_SECONDS = 5.0
MOST_MEMORY_KIB = 1 << 20
_RESHAPED = (b"{", b"[", b"O")
NAMES = tuple(each.name for each in samples())


def sample_of(name: str) -> Sample:
    return next(each for each in samples() if each.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_read_or_refused(name: str) -> None:
    sample = sample_of(name)
    assert outcome(sample.decode, sample.data) == "read"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = set()
    for attempt in range(ATTEMPTS):
        chance = random.Random(f"{name} {attempt}")
        change = reshaped if attempt % 2 and sample.data[:1] in _RESHAPED else damaged
        data = change(sample.data, chance)
        started = time.process_time()
        found.add(outcome(sample.decode, data))
        assert time.process_time() - started < MOST_SECONDS, attempt
    assert found - {"read"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_MEMORY_KIB


@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_cut_a_file_off_is_refused(name: str) -> None:
    sample = sample_of(name)
    for length in range(0, len(sample.data), max(1, len(sample.data) // 25)):
        assert outcome(sample.decode, sample.data[:length]) != "read" or length == 0, length
