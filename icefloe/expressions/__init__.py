"""Which rows are wanted: predicates, parsing, binding, projection through a spec, evaluation on values or statistics."""

from icefloe.expressions.arrow import mask, to_arrow
from icefloe.expressions.binding import bind, bind_extract, bound_references, bound_terms
from icefloe.expressions.codec import expression_from_json, expression_to_json, expression_to_term_json
from icefloe.expressions.columns import Column, bucket, col, days, hours, months, truncate, years
from icefloe.expressions.evaluate import evaluate
from icefloe.expressions.facts import Mask, PartitionSummaries, Statistics
from icefloe.expressions.normal import rewrite_not, simplify
from icefloe.expressions.parser import (
    Truth,
    all_of,
    any_of,
    as_expression,
    certain,
    parse_expression,
    parse_extract,
    truth,
)
from icefloe.expressions.projection import Residuals, inclusive_projection, residual, strict_projection
from icefloe.expressions.statistics import FileAnswers, might_match, must_match, partitions_might_match
from icefloe.expressions.terms import (
    BoundExtract,
    BoundReference,
    BoundTerm,
    BoundTransform,
    Extract,
    IdReference,
    Literal,
    Reference,
    Term,
    Transformed,
    literal,
)
from icefloe.expressions.tokens import Cursor, Token, TokenKind
from icefloe.expressions.values import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    Intersects,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotIntersects,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    SetPredicate,
    SpatialPredicate,
    StartsWith,
    UnaryPredicate,
    conjunction,
    disjunction,
)
from icefloe.expressions.walks import predicates
