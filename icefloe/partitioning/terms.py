"""How a transform over a column is written by people: `region`, `days(ts)`, `bucket(16, id)`, as in Spark SQL."""

import re
from dataclasses import dataclass

from icefloe.errors import InvalidTransformError
from icefloe.partitioning import transforms as tr
from icefloe.schema import NestedField, Schema, types

_ONE_ARGUMENT: dict[str, tr.Transform] = {
    "identity": tr.IdentityTransform(),
    "year": tr.YearTransform(),
    "years": tr.YearTransform(),
    "month": tr.MonthTransform(),
    "months": tr.MonthTransform(),
    "day": tr.DayTransform(),
    "days": tr.DayTransform(),
    "date": tr.DayTransform(),
    "hour": tr.HourTransform(),
    "hours": tr.HourTransform(),
    "date_hour": tr.HourTransform(),
    "void": tr.VoidTransform(),
}
_WITH_NUMBER: dict[str, type[tr.BucketTransform] | type[tr.TruncateTransform]] = {
    "bucket": tr.BucketTransform,
    "truncate": tr.TruncateTransform,
}
_CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^`.]+)")


@dataclass(frozen=True, slots=True)
class Term:
    """A transform and the full name of the column that it is applied to."""

    transform: tr.Transform
    column: str

    def __str__(self) -> str:
        match self.transform:
            case tr.IdentityTransform():
                return self.column
            case tr.BucketTransform(num_buckets=number) | tr.TruncateTransform(width=number):
                return f"{str(self.transform).partition('[')[0]}({number}, {self.column})"
            case _:
                return f"{self.transform}({self.column})"


def parse_term(text: str) -> Term:
    """Reads `column`, `days(column)`, `bucket(16, column)`, `truncate(column, 4)`; names may be in backquotes."""
    match = _CALL.fullmatch(written(text))
    if match is None:
        return Term(tr.IdentityTransform(), column_name(text))
    name, arguments = match[1].lower(), _split(match[2])
    if plain := _ONE_ARGUMENT.get(name):
        if len(arguments) != 1:
            raise InvalidTransformError(f"{text!r} has {len(arguments)} arguments; {name} takes one column")
        return Term(plain, column_name(arguments[0]))
    if parametrized := _WITH_NUMBER.get(name):
        number, column = _number_and_column(text, name, arguments)
        return Term(parametrized(number), column)
    known = ", ".join((*_ONE_ARGUMENT, *_WITH_NUMBER))
    raise InvalidTransformError(f"transform {match[1]!r} in {text!r} is unknown; transforms are {known}")


def written(text: object) -> str:
    """The text stripped of surrounding space, or an error if it is blank or not a string."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidTransformError(f"{text!r} is not a column or a transform such as 'days(ts)'")
    return text.strip()


def column_name(text: str) -> str:
    """The dotted name without the backquotes around its parts."""
    text = text.strip()
    if "`" not in text:
        return text
    parts, position = [], 0
    while match := _NAME_PART.match(text, position):
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        position = match.end()
        if position == len(text):
            return ".".join(parts)
        if text[position] != ".":
            break
        position += 1
    raise InvalidTransformError(f"{text!r} is not a column name; backquotes go around whole parts of it")


def find_source(term: Term, schema: Schema, case_sensitive: bool = True) -> NestedField:
    """The column of the term, if the transform accepts its type."""
    field = schema.find_field(term.column, case_sensitive)
    if not term.transform.can_transform(field.field_type):
        raise InvalidTransformError(
            f"{term} is not possible: transform {term.transform} does not support columns of type {field.field_type}"
        )
    return field


def source_problem(transform: tr.Transform, source_ids: tuple[int, ...], schema: Schema) -> str | None:
    """Why the columns cannot be the source of the transform; None if they can."""
    if len(source_ids) > 1 and not isinstance(transform, tr.UnknownTransform):
        return f"{transform} takes one source column"
    for source_id in source_ids:
        source = schema.fields_by_id.get(source_id)
        if source is None:
            return f"source column {source_id} is not in the schema"
        if not isinstance(source.field_type, types.PrimitiveType):
            return f"source column {source.name!r} is of type {source.field_type}; it must be primitive"
        if not transform.can_transform(source.field_type):
            return (
                f"transform {transform} does not support columns of type {source.field_type}, such as {source.name!r}"
            )
        for parent in schema.ancestors(source_id):
            if not isinstance(parent.field_type, types.StructType):
                return f"source column {source.name!r} is inside the list or map {parent.name!r}"
    return None


def rebind_sources(source_ids: tuple[int, ...], old: Schema, new: Schema) -> list[int]:
    """The ids in the new schema of the columns that have these ids in the old one, by their names."""
    return [new.find_field(old.names_by_id[old.find_field(source_id).field_id]).field_id for source_id in source_ids]


def _number_and_column(text: str, name: str, arguments: list[str]) -> tuple[int, str]:
    numbers = [argument for argument in arguments if _NUMBER.fullmatch(argument)]
    if len(arguments) != 2 or not numbers:
        raise InvalidTransformError(f"{text!r} must be {name}(number, column)")
    # With two numbers the column is named like one; the number then comes first, as Spark writes it.
    column = arguments[1] if arguments[0] == numbers[0] else arguments[0]
    return int(numbers[0]), column_name(column)


def _split(text: str) -> list[str]:
    parts = re.findall(r"(?:`[^`]*`|[^,`])+|(?<=,)(?=,|$)", text)
    return [part.strip() for part in parts]
