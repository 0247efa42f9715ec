"""Statements that make tables and change how they are kept: CREATE, partition fields, order, properties, CTAS, RTAS."""

from dataclasses import replace

from tests.peers.sql.histories.expressions import Scope, predicate
from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import (
    COPY,
    MODES,
    TABLE,
    Draft,
    PartitionField,
    Statement,
    partitionable,
    transforms_of,
)
from tests.peers.sql.histories.names import quoted
from tests.peers.sql.histories.parts import Choice, Part, columns, items, seq
from tests.peers.sql.histories.rows import copied
from tests.peers.sql.histories.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    VARIANT,
    Decimal,
    Field,
    Path,
    Plain,
    has,
    paths,
    random_fields,
    type_part,
)

PROPERTIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("write.metadata.metrics.default", ("none", "counts", "truncate(3)", "full")),
    ("write.distribution-mode", ("none", "hash", "range")),
    ("write.format.default", ("orc", "avro", "parquet")),
    ("write.metadata.compression-codec", ("gzip",)),
    ("write.object-storage.enabled", ("true",)),
    ("write.delete.granularity", ("file", "partition")),
    ("commit.manifest.min-count-to-merge", ("2",)),
    ("write.parquet.row-group-size-bytes", ("1000",)),
    ("write.parquet.compression-codec", ("gzip", "snappy", "uncompressed")),
    ("write.target-file-size-bytes", ("1000",)),
    ("write.spark.fanout.enabled", ("true",)),
    ("write.parquet.dict-size-bytes", ("100",)),
    ("read.parquet.vectorization.enabled", ("false",)),
    ("read.parquet.vectorization.batch-size", ("1", "2")),
    ("read.split.target-size", ("1000",)),
)


def create(draft: Draft) -> Statement:
    """The table, with partitions, properties, and columns of all types."""
    chance = draft.chance
    draft.fields = random_fields(chance, draft.keys, draft.shapes, chance.randint(2, 5), 0, [])
    if chance.random() < 0.8 and "id" not in {each.name.lower() for each in draft.fields}:
        draft.fields = (Field(draft.keys.new(), "id", Plain(chance.choice(("INT", "BIGINT")))), *draft.fields)
    made = [
        (
            each.key,
            seq(
                quoted(each.name),
                " ",
                type_part(each.type),
                " NOT NULL" * each.required,
                " COMMENT 'said'" if chance.random() < 0.05 else "",
            ),
        )
        for each in draft.fields
    ]
    partitions = _partitioning(draft, chance.choice((0, 0, 1, 1, 2)))
    shown: Part = ""
    if partitions:
        shown = Choice(seq(" PARTITIONED BY (", items([each.part for each in partitions]), ")"), ("",))
    draft.partitions = partitions
    return Statement(
        seq(f"CREATE TABLE {TABLE} (", columns(made), ") USING iceberg", shown, _properties(draft)), "create"
    )


def _properties(draft: Draft) -> Part:
    chance = draft.chance
    found: list[Part] = [f"'write.{each}.mode'='{draft.mode}'" for each in ("delete", "update", "merge")]
    for key, values in PROPERTIES:
        if chance.random() < 0.06:
            found.append(f"'{key}'='{chance.choice(values)}'")
    if draft.wap:
        found.append("'write.wap.enabled'='true'")
    return seq(f" TBLPROPERTIES ('format-version'='{draft.version}', ", items(found), ")")


def _partitioning(draft: Draft, count: int) -> list[PartitionField]:
    found: list[PartitionField] = []
    for _ in range(count):
        made = _partition_field(draft)
        if made is not None and made.source not in {each.source for each in found}:
            found.append(made)
    return found


def _partition_field(draft: Draft) -> PartitionField | None:
    chance = draft.chance
    sources = partitionable(draft.fields)
    draw = chance.random()
    if draw < 0.4:
        plain = [path for path in paths(draft.fields) if isinstance(path.last.type, Plain | Decimal)]
        plain = [path for path in plain if path.last.type not in (VARIANT, FLOAT, DOUBLE)]
        if not plain:
            return None
        path = chance.choice(plain)
        return PartitionField(_dotted(path), Scope(draft.fields).name(path), path.last.key, identity=True)
    if not sources:
        return None
    path = chance.choice(sources)
    transform = chance.choice(transforms_of(path.last.type))
    if transform == "truncate" and path.last.type in (INT, BIGINT) and not draft.may(Defect.TRUNCATED_LEAST):
        transform = "bucket"
    name = Scope(draft.fields).name(path)
    width = chance.choice((1, 2, 3, 5, 100))
    part = seq(f"{transform}({width}, " if transform in ("bucket", "truncate") else f"{transform}(", name, ")")
    return PartitionField(_dotted(path), part, path.last.key, identity=False)


def _dotted(path: Path) -> str:
    return ".".join(each.name for each in path.fields)


def change_partitions(draft: Draft) -> Statement | None:
    """A partition field more, one less, or another in its place."""
    chance = draft.chance
    old = chance.choice(draft.partitions) if draft.partitions else None
    made = _partition_field(draft)
    if old is not None and draft.version == 1 and not draft.may(Defect.VOID_PARTITIONS):
        old = None
    if old is not None and chance.random() < 0.5:
        if made is not None and chance.random() < 0.5:
            draft.partitions = [made if each is old else each for each in draft.partitions]
            return Statement(
                seq(f"ALTER TABLE {TABLE} REPLACE PARTITION FIELD ", old.part, " WITH ", made.part), "partition field"
            )
        draft.partitions.remove(old)
        return Statement(seq(f"ALTER TABLE {TABLE} DROP PARTITION FIELD ", old.part), "partition field")
    if made is None:
        return None
    draft.partitions.append(made)
    name = f" AS p{len(draft.partitions)}" if chance.random() < 0.3 else ""
    return Statement(seq(f"ALTER TABLE {TABLE} ADD PARTITION FIELD ", made.part, name), "partition field")


def change_order(draft: Draft) -> Statement | None:
    """The order that rows are written in."""
    chance = draft.chance
    if chance.random() < 0.3:
        how = chance.choice(("WRITE UNORDERED", "WRITE DISTRIBUTED BY PARTITION"))
        return Statement(f"ALTER TABLE {TABLE} {how}", "order")
    plain = [path for path in paths(draft.fields) if isinstance(path.last.type, Plain | Decimal)]
    plain = [path for path in plain if path.last.type != VARIANT]
    if not plain:
        return None
    path = chance.choice(plain)
    how = chance.choice(
        ("WRITE ORDERED BY ", "WRITE LOCALLY ORDERED BY ", "WRITE DISTRIBUTED BY PARTITION ORDERED BY ")
    )
    direction = chance.choice(("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"))
    return Statement(seq(f"ALTER TABLE {TABLE} {how}", Scope(draft.fields).name(path), direction), "order")


def change_properties(draft: Draft) -> Statement:
    """Properties set or taken away; the format version only grows."""
    chance = draft.chance
    draw = chance.random()
    if draw < 0.25 and draft.version < 3:
        draft.version += 1
        return Statement(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('format-version'='{draft.version}')", "upgrade")
    if draw < 0.5:
        draft.mode = chance.choice(MODES[: min(draft.version, 2)])
        what = chance.choice(("delete", "update", "merge"))
        return Statement(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('write.{what}.mode'='{draft.mode}')", "properties")
    key, values = chance.choice(PROPERTIES)
    if draw < 0.9:
        return Statement(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('{key}'='{chance.choice(values)}')", "properties")
    return Statement(f"ALTER TABLE {TABLE} UNSET TBLPROPERTIES IF EXISTS ('{key}')", "properties")


def _query(draft: Draft, chosen: list[Field]) -> Part:
    where = Choice(seq(" WHERE ", predicate(draft.chance, Scope(draft.fields))), ("",))
    named = columns([(each.key, quoted(each.name)) for each in chosen])
    return seq("SELECT ", named, f" FROM {TABLE}", where)


def create_as(draft: Draft) -> Statement:
    """Another table from rows of this one."""
    chosen = copied(draft)
    properties = f" TBLPROPERTIES ('format-version'='{draft.version}')"
    verb = "CREATE OR REPLACE TABLE" if draft.copy is not None or draft.chance.random() < 0.3 else "CREATE TABLE"
    draft.copy = tuple(chosen)
    return Statement(seq(f"{verb} {COPY} USING iceberg{properties} AS ", _query(draft, chosen)), "create as")


def replace_as(draft: Draft) -> Statement | None:
    """The table itself from its own rows, with fewer columns."""
    if any(has(each.type, VARIANT) for each in draft.fields) and not draft.may(Defect.VARIANT_IDS):
        return None
    chosen = copied(draft)
    verb = draft.chance.choice(("CREATE OR REPLACE TABLE", "REPLACE TABLE"))
    sources = {each.key for each in chosen}
    kept = [each for each in draft.partitions if each.source in sources][:1]
    shown: Part = ""
    if kept:
        shown = Choice(seq(" PARTITIONED BY (", items([each.part for each in kept]), ")"), ("",))
    statement = Statement(seq(f"{verb} {TABLE} USING iceberg", shown, " AS ", _query(draft, chosen)), "replace as")
    draft.fields = tuple(replace(each, required=False) for each in chosen)
    draft.partitions = kept
    draft.snapshots += 1
    draft.branches, draft.tags = [], []
    return statement


def drop_and_create(draft: Draft) -> Statement:
    """Nothing is left of the table."""
    return Statement(f"DROP TABLE {TABLE}", "drop")
