"""Options: by Java's names or as keywords, checked before anything happens, and unknown ones refused."""

import pytest

from icefloe import properties as props
from icefloe.errors import InvalidInputError, InvalidPropertyError
from icefloe.maintenance.options import OptionValue, fraction, optional, options_of

COUNT = props.Property("min-input-files", 5, props.whole_number(1))
RATIO = props.Property("delete-ratio-threshold", 0.3, fraction(0, 1))
LIMIT: props.Property[int | None] = props.Property("max-files", None, optional(props.whole_number(1)))
IS_PARTIAL = props.Property("partial-progress.enabled", False, props.property_as_bool)
KNOWN = (COUNT, RATIO, LIMIT, IS_PARTIAL)


def test_texts_values_and_keywords_mean_the_same() -> None:
    texts = options_of("x", KNOWN, {"min-input-files": "2", "partial-progress.enabled": "TRUE"})
    values = options_of("x", KNOWN, {"min-input-files": 2, "partial-progress.enabled": True})
    keywords = options_of("x", KNOWN, None, {"min_input_files": 2, "partial_progress_enabled": True, "max_files": None})
    for options in (texts, values, keywords):
        assert (COUNT.of(options), IS_PARTIAL.of(options), RATIO.of(options), LIMIT.of(options)) == (2, True, 0.3, None)
    assert LIMIT.of(options_of("x", KNOWN, {"max-files": "7"})) == 7


def test_options_are_a_dictionary() -> None:
    with pytest.raises(InvalidInputError, match=r"options of x must be a dictionary of values by name, not \['a'\]"):
        options_of("x", KNOWN, ["a"])  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min-input-file": "2"}, r"'min-input-file' of x is unknown; did you mean 'min-input-files'\?"),
        ({"min_input_files": "2"}, r"'min_input_files' of x is unknown; did you mean 'min-input-files'\?"),
        ({"zzz": "2"}, r"unknown; options are delete-ratio-threshold, max-files, min-input-files, partial"),
        ({"min-input-files": "0"}, r"option 'min-input-files' of x is '0'; it must be a whole number from 1 to"),
        (
            {"delete-ratio-threshold": "0"},
            r"option 'delete-ratio-threshold' of x is 0; it must be greater than 0 and at most 1",
        ),
        ({"delete-ratio-threshold": "1.01"}, r"at most 1"),
        ({"delete-ratio-threshold": "nan"}, r"at most 1"),
        (
            {"partial-progress.enabled": "yes"},
            r"option 'partial-progress.enabled' of x is 'yes'; it must be true or false",
        ),
        ({"max-files": "many"}, r"option 'max-files' of x is 'many'; it must be a whole number from 1"),
    ],
)
def test_what_means_nothing_is_refused(options: dict[str, OptionValue], message: str) -> None:
    with pytest.raises(InvalidPropertyError, match=message):
        options_of("x", KNOWN, options)


def test_keywords_are_checked_like_options() -> None:
    with pytest.raises(InvalidPropertyError, match=r"did you mean 'min_input_files'\?"):
        options_of("x", KNOWN, None, {"min_input_file": 2})
    with pytest.raises(InvalidInputError, match="given twice"):
        options_of("x", KNOWN, {"min-input-files": "2"}, {"min_input_files": 2})
