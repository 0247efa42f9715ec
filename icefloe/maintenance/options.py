"""Options of maintenance by Java's names: which ones a procedure knows, what their texts mean, and what may not be given.

Each is a `Property` of the caller's options. `{"min-input-files": "2"}` and the keyword `min_input_files=2` mean the same.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from icefloe import errors, properties as props

Value = TypeVar("Value")
OptionValue: TypeAlias = str | int | float
"""What a caller may write for a value; texts as in SQL, or the value itself."""
Options: TypeAlias = Mapping[str, str]
"""Options as texts by their names, known and checked."""

Reader: TypeAlias = Callable[[props.Properties, str, Value], Value]


class Option(Protocol):
    """A known option, such as a `Property`: `option.of(options)` is its value."""

    @property
    def key(self) -> str:
        """Its name."""

    def of(self, properties: props.Properties, /) -> object:
        """Its value, or its default; an error if the text means nothing."""


def fraction(above: float, at_most: float = float("inf")) -> Reader[float]:
    """How a number in a range is read whose lower end is left out."""

    def read(options: props.Properties, key: str, default: float) -> float:
        value = props.property_as_float(options, key, default)
        if not above < value <= at_most:
            upper = "" if at_most == float("inf") else f" and at most {at_most:g}"
            raise errors.InvalidPropertyError(f"property {key!r} is {value:g}; it must be more than {above:g}{upper}")
        return value

    return read


def optional(reader: Reader[Value]) -> Reader[Value | None]:
    """How an option is read that is not there by default."""

    def read(options: props.Properties, key: str, default: Value | None) -> Value | None:
        # The default of a reader is used only where there is no text.
        return reader(options, key, default) if key in options else default  # type: ignore[arg-type]

    return read


def options_of(
    what: str,
    known: Iterable[Option],
    options: Mapping[str, OptionValue] | None,
    keywords: Mapping[str, OptionValue | None] | None = None,
) -> Options:
    """The options of a call as texts, after a look at each: known, given once, and of a value that means something.

    Args:
        what: the name of the procedure, for messages.
        known: its options.
        options: options by Java's names.
        keywords: options by these names with `_` in place of `-` and `.`; None is not given.
    """
    by_key = {option.key: option for option in known}
    texts = {}
    if not isinstance(options, Mapping | None):
        raise errors.InvalidInputError(f"options of {what} are {options!r}; give a dictionary of values by their names")
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
        raise errors.InvalidInputError(f"option {key!r} of {what} is given twice; give it once")
    texts[key] = _text(what, key, value)


def _text(what: str, key: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise errors.InvalidPropertyError(
            f"option {key!r} of {what} is {value!r}; it must be a text, a number, true or false"
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
    """The error about a name that is none of those known, with the one that was probably meant."""
    near = difflib.get_close_matches(key.lower().replace("_", "-"), known, 1) or difflib.get_close_matches(
        key, known, 1
    )
    hint = f"did you mean {near[0]!r}?" if near else f"options are {', '.join(sorted(known))}"
    return errors.InvalidPropertyError(f"option {key!r} of {what} is not known; {hint}")
