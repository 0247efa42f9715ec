"""A history from a seed: settings, a table, and statements that change it, always the same for the same seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.peers.sql.histories import columns, merging, queries, refs, rows, tables
from tests.peers.sql.histories.known import KNOWN_DEFECTS, Defect
from tests.peers.sql.histories.model import MODES, Draft, Statement
from tests.peers.sql.histories.settings import random_settings
from tests.peers.sql.histories.types import Keys, Shapes


@dataclass(frozen=True, slots=True)
class History:
    """Settings of the session, and statements that run one after the other; the first one creates the table."""

    seed: int
    settings: tuple[tuple[str, str], ...]
    statements: tuple[Statement, ...]


KINDS: tuple[tuple[float, Callable[[Draft], Statement | None]], ...] = (
    (14, rows.insert_values),
    (5, rows.insert_select),
    (5, rows.overwrite),
    (10, rows.update),
    (8, rows.delete),
    (0.7, rows.truncate),
    (11, merging.merge),
    (6, columns.add_column),
    (4, columns.drop_column),
    (5, columns.rename_column),
    (2, columns.move_column),
    (3, columns.widen_column),
    (1.2, columns.change_nullability),
    (0.7, columns.comment_column),
    (4, tables.change_partitions),
    (1.2, tables.change_order),
    (3, tables.change_properties),
    (1.2, tables.create_as),
    (1, tables.replace_as),
    (3, refs.make_ref),
    (1, refs.drop_ref),
    (3, refs.procedure),
    (3, refs.travel),
    (3, refs.write_audit_publish),
    (7, queries.query),
    (3, queries.aggregate),
    (2.5, queries.metadata),
    (3, queries.view),
)


def history(seed: int, avoid: frozenset[Defect] = KNOWN_DEFECTS, length: int = 10) -> History:
    """The history of a seed, with about as many statements as asked for."""
    chance = random.Random(seed)
    version = chance.choice((1, 2, 2, 3, 3, 3))
    settings = random_settings(chance, avoid)
    twins = settings.get("spark.sql.caseSensitive") == "true" and Defect.CASE_TWINS not in avoid
    variants = version >= 3 and chance.random() < 0.5
    if variants and Defect.VARIANT_IDS in avoid:
        settings["spark.sql.variant.pushVariantIntoScan"] = "false"
    draft = Draft(
        chance=chance,
        keys=Keys(),
        shapes=Shapes(
            variants=variants,
            twins=twins,
            floats_inside=Defect.FLOATS_INSIDE not in avoid,
            required_inside=Defect.REQUIRED_INSIDE not in avoid,
        ),
        version=version,
        settings=dict(settings),
        avoid=avoid,
        wap=chance.random() < 0.12,
        mode=chance.choice(MODES[: min(version, 2)]),
    )
    statements = [tables.create(draft), rows.insert_values(draft)]
    weights = [weight for weight, _ in KINDS]
    while len(statements) < chance.randint(length - 3, length + 3):
        [(_, make)] = chance.choices(KINDS, weights)
        made = make(draft)
        if made is not None:
            statements.append(made)
    return History(seed, tuple(settings.items()), tuple(statements))
