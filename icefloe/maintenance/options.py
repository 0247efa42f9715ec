"""Maintenance options with Java's names: parsing and validation.

Each option is a `Property`. `{"min-input-files": "2"}` and the keyword `min_input_files=2` are equivalent.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from icefloe import errors, properties as props

Value = TypeVar("Value")
OptionValue: TypeAlias = str | int | float
"""Types of option values: text as in SQL, or the value itself."""
Options: TypeAlias = Mapping[str, str]
"""Validated options as text, by name."""

Reader: TypeAlias = Callable[[props.Properties, str, Value], Value]


class Option(Protocol):
    """A known option, such as a `Property`: `option.of(options)` returns its value."""

    @property
    def key(self) -> str:
        """The name."""

    def of(self, properties: props.Properties, /) -> object:
        """Return the value or the default; raises an error if the text is invalid."""


def fraction(above: float, at_most: float = float("inf")) -> Reader[float]:
    """Return a reader of numbers in a range with an exclusive lower end."""

    def read(options: props.Properties, key: str, default: float) -> float:
        value = props.property_as_float(options, key, default)
        if not above < value <= at_most:
            upper = "" if at_most == float("inf") else f" and at most {at_most:g}"
            raise errors.InvalidPropertyError(
                f"property {key!r} is {value:g}; it must be greater than {above:g}{upper}"
            )
        return value

    return read


def optional(reader: Reader[Value]) -> Reader[Value | None]:
    """Return a reader of an option without a default."""

    def read(options: props.Properties, key: str, default: Value | None) -> Value | None:
        # A reader uses the default only if there is no text.
        return reader(options, key, default) if key in options else default  # type: ignore[arg-type]

    return read


def options_of(
    what: str,
    known: Iterable[Option],
    options: Mapping[str, OptionValue] | None,
    keywords: Mapping[str, OptionValue | None] | None = None,
) -> Options:
    """Return the options of a call as text, after checking that each is known, given once and valid.

    Args:
        what: the name of the procedure, for messages.
        known: the options of the procedure.
        options: options with Java's names.
        keywords: options with `_` in place of `-` and `.`; None means not given.
    """
    by_key = {option.key: option for option in known}
    texts = {}
    if not isinstance(options, Mapping | None):
        raise errors.InvalidInputError(f"options of {what} must be a dictionary of values by name, not {options!r}")
    for key, value in (options or {}).items():
        if key not in by_key:
            raise unknown(what, key, list(by_key))
        texts[key] = _text(what, key, value)
    by_keyword = {key.replace("-", "_").replace(".", "_"): key for key in by_key}
    for name, own in (keywords or {}).items():
        if name not in by_keyword:
            raise unknown(what, name, list(by_keyword))
        if own is not None:
            _add(texts, what, by_keyword[name], own)
    _check(what, by_key.values(), texts)
    return texts


def _add(texts: dict[str, str], what: str, key: str, value: OptionValue) -> None:
    if key in texts:
        raise errors.InvalidInputError(f"option {key!r} of {what} is given twice")
    texts[key] = _text(what, key, value)


def _text(what: str, key: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise errors.InvalidPropertyError(
            f"option {key!r} of {what} is {value!r}; it must be a string, number or boolean"
        )
    return str(value)


def _check(what: str, known: Iterable[Option], texts: Options) -> None:
    for option in known:
        try:
            option.of(texts)
        except errors.InvalidPropertyError as problem:
            wording = str(problem).removeprefix(f"property {option.key!r} ")
            raise errors.InvalidPropertyError(f"option {option.key!r} of {what} {wording}") from None


def unknown(what: str, key: str, known: Sequence[str]) -> errors.InvalidPropertyError:
    """Return the error for an unknown option, with a suggestion."""
    near = difflib.get_close_matches(key.lower().replace("_", "-"), known, 1) or difflib.get_close_matches(
        key, known, 1
    )
    hint = f"did you mean {near[0]!r}?" if near else f"options are {', '.join(sorted(known))}"
    return errors.InvalidPropertyError(f"option {key!r} of {what} is unknown; {hint}")
