"""Which engine runs maintenance."""

import pytest

from icefloe.errors import InvalidInputError
from icefloe.maintenance import Threads, engine_of


def test_this_process_is_the_default() -> None:
    engine = engine_of(None)
    assert isinstance(engine, Threads)
    assert list(engine.map(len, ["", "a", "bb"])) == [0, 1, 2]


@pytest.mark.parametrize("engine", ["flink", 7])
def test_other_engines_are_refused(engine: object) -> None:
    with pytest.raises(InvalidInputError, match="it must be None, 'spark' or a Spark session"):
        engine_of(engine)
