"""Questions between the changes: projections of nested fields, filters, groups, joins, metadata tables, temporary views."""

from tests.peers.sql.histories.expressions import Scope, predicate
from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import TABLE, VIEW, Draft, Statement
from tests.peers.sql.histories.names import quoted
from tests.peers.sql.histories.parts import Choice, Part, items, seq
from tests.peers.sql.histories.types import VARIANT, Array, Decimal, Map, Path, Plain, Struct, paths


def query(draft: Draft) -> Statement:
    """Some columns and fields of the rows of a condition."""
    chance = draft.chance
    scope = Scope(draft.fields)
    found = list(paths(draft.fields))
    shown: list[Part] = [
        _shown(draft, scope, path) for path in chance.sample(found, min(len(found), chance.randint(1, 3)))
    ]
    named: list[Part] = [seq(part, f" AS r{i}") for i, part in enumerate(shown)]
    where = Choice(seq(" WHERE ", predicate(chance, scope)), ("",))
    return Statement(seq("SELECT ", items(named), f" FROM {TABLE}", where), "query")


def _shown(draft: Draft, scope: Scope, path: Path) -> Part:
    name = scope.name(path)
    match path.last.type:
        case Array(Struct(fields)) if draft.chance.random() < 0.7:
            return seq(name, f".{quoted(draft.chance.choice(fields).name)}")
        case Array():
            return seq("size(", name, ")") if draft.chance.random() < 0.3 else name
        case Map():
            return seq("map_keys(", name, ")") if draft.chance.random() < 0.4 else name
        case Plain("VARIANT") if draft.chance.random() < 0.6:
            return seq("try_variant_get(", name, ", '$.a', 'INT')")
        case _:
            return name


def aggregate(draft: Draft) -> Statement:
    """Counts and extremes, by groups now and then."""
    chance = draft.chance
    scope = Scope(draft.fields)
    plain = [path for path in paths(draft.fields) if isinstance(path.last.type, Plain | Decimal)]
    plain = [path for path in plain if path.last.type != VARIANT]
    where: Part = Choice(seq(" WHERE ", predicate(chance, scope)), ("",)) if chance.random() < 0.4 else ""
    if not plain:
        return Statement(seq(f"SELECT count(*) AS n FROM {TABLE}", where), "query")
    path = chance.choice(plain)
    name = scope.name(path)
    measures: list[Part] = [
        "count(*) AS n",
        seq("count(", name, ") AS c"),
        seq("min(", name, ") AS least"),
        seq("max(", name, ") AS most"),
    ]
    if chance.random() < 0.3:
        group = scope.name(chance.choice(plain))
        return Statement(
            seq("SELECT ", group, " AS g, ", items(measures), f" FROM {TABLE}", where, " GROUP BY ", group), "query"
        )
    return Statement(seq("SELECT ", items(measures), f" FROM {TABLE}", where), "query")


def metadata(draft: Draft) -> Statement:
    """What metadata tables and columns say, where it is the same for all engines."""
    chance = draft.chance
    texts = [
        f"SELECT operation, parent_id IS NULL AS first FROM {TABLE}.snapshots",
        f"SELECT sum(record_count) AS n FROM {TABLE}.partitions",
        f"SELECT name, type FROM {TABLE}.refs",
        f"SELECT is_current_ancestor FROM {TABLE}.history",
        f"SELECT sum(record_count) AS n FROM {TABLE}.data_files",
        f"SELECT partition FROM {TABLE}.partitions",
        f"SELECT DISTINCT partition, spec_id FROM {TABLE}.data_files",
        f"SELECT content, sum(record_count) AS n FROM {TABLE}.all_data_files GROUP BY content",
        f"SELECT _spec_id, _deleted, count(*) AS n FROM {TABLE} GROUP BY _spec_id, _deleted",
        f"SELECT _partition, count(*) AS n FROM {TABLE} GROUP BY _partition",
    ]
    if draft.version >= 3:
        texts.append(f"SELECT min(_row_id) AS a, count(DISTINCT _row_id) AS n FROM {TABLE}")
    return Statement(chance.choice(texts), "metadata")


def view(draft: Draft) -> Statement | None:
    """A temporary view of the table, or its rows."""
    if not draft.may(Defect.TEMPORARY_VIEWS):
        return None
    if draft.view and draft.chance.random() < 0.7:
        return Statement(f"SELECT * FROM {VIEW}", "view")
    draft.view = True
    where = Choice(seq(" WHERE ", predicate(draft.chance, Scope(draft.fields))), ("",))
    return Statement(seq(f"CREATE OR REPLACE TEMPORARY VIEW {VIEW} AS SELECT * FROM {TABLE}", where), "make view")
