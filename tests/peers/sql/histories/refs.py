"""Statements on snapshots: branches, tags, WAP, time travel and the procedures that both engines have."""

from tests.peers.sql.histories.expressions import Scope, predicate
from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import TABLE, Draft, Statement
from tests.peers.sql.histories.parts import Choice, seq

CATALOG = "«catalog»"
NAME = "'«name»'"
"""The table as procedures name it."""


def _snapshot(draft: Draft) -> str:
    return f"«snapshot {draft.chance.randint(1, max(1, draft.snapshots))}»"


def make_ref(draft: Draft) -> Statement | None:
    """A branch or a tag, of now or of a snapshot before."""
    chance = draft.chance
    if draft.snapshots == 0 and not draft.may(Defect.EMPTY_BRANCHES):
        return None
    kind = chance.choice(("BRANCH", "TAG"))
    name = chance.choice(("b1", "b2", "audit") if kind == "BRANCH" else ("t1", "t2"))
    verb = chance.choice(("CREATE", "CREATE", "CREATE OR REPLACE", "REPLACE"))
    at = f" AS OF VERSION {_snapshot(draft)}" if draft.snapshots and chance.random() < 0.4 else ""
    known = draft.branches if kind == "BRANCH" else draft.tags
    if name not in known and verb != "REPLACE":
        known.append(name)
    tail = chance.choice(("", "", "", " RETAIN 7 DAYS"))
    return Statement(seq(f"ALTER TABLE {TABLE} {verb} {kind} {name}", Choice(f"{at}{tail}", ("", at))), "ref")


def drop_ref(draft: Draft) -> Statement | None:
    """A branch or a tag less."""
    chance = draft.chance
    kind = chance.choice(("BRANCH", "TAG"))
    known = draft.branches if kind == "BRANCH" else draft.tags
    if not known:
        return None
    name = chance.choice(known)
    known.remove(name)
    return Statement(f"ALTER TABLE {TABLE} DROP {kind} {name}", "ref")


def procedure(draft: Draft) -> Statement | None:
    """A procedure that both engines have, on snapshots and manifests."""
    chance = draft.chance
    if draft.snapshots < 1:
        return None
    calls = [
        f"rollback_to_snapshot({NAME}, {_snapshot(draft)})",
        f"set_current_snapshot({NAME}, {_snapshot(draft)})",
        f"cherrypick_snapshot({NAME}, {_snapshot(draft)})",
        f"rewrite_manifests({NAME})",
        f"rewrite_manifests({NAME}, false)",
    ]
    if draft.may(Defect.EXPIRE_CALL):
        calls.append(
            f"expire_snapshots(table => {NAME}, older_than => TIMESTAMP'2999-01-01', retain_last => {chance.randint(1, 3)})"
        )
    if draft.branches:
        calls.append(f"fast_forward({NAME}, 'main', '{chance.choice(draft.branches)}')")
        calls.append(f"fast_forward({NAME}, '{chance.choice(draft.branches)}', 'main')")
    if draft.wap:
        calls.append(f"publish_changes({NAME}, 'w1')")
    return Statement(f"CALL {CATALOG}.system.{chance.choice(calls)}", "procedure")


def travel(draft: Draft) -> Statement | None:
    """The rows of a snapshot, a ref or a time before."""
    chance = draft.chance
    if draft.snapshots == 0:
        return None
    number = chance.randint(1, draft.snapshots)
    forms = [f"{TABLE} VERSION AS OF «snapshot {number}»", f"{TABLE} TIMESTAMP AS OF «time {number}»"]
    forms += [f"{TABLE} VERSION AS OF '{each}'" for each in (*draft.branches, *draft.tags)]
    forms += [f"{TABLE}.branch_{each}" for each in draft.branches] + [f"{TABLE}.tag_{each}" for each in draft.tags]
    forms.append(f"{TABLE}.`snapshot_id_«snapshot {number}»`")
    where = Choice(seq(" WHERE ", predicate(chance, Scope(draft.fields))), ("",))
    shown = chance.choice(("*", "*", "count(*)"))
    if chance.random() < 0.5:
        # The columns of then may not be those of now.
        return Statement(f"SELECT {shown} FROM {chance.choice(forms)}", "travel")
    return Statement(seq(f"SELECT {shown} FROM {chance.choice(forms)}", where), "travel")


def write_audit_publish(draft: Draft) -> Statement | None:
    """What is written from now on is staged, or is not any more."""
    if not draft.wap:
        return None
    chance = draft.chance
    key = "spark.wap.id"
    if draft.may(Defect.WAP_BRANCH) and chance.random() < 0.6:
        key = "spark.wap.branch"
    if key in draft.settings:
        del draft.settings[key]
        return Statement(f"RESET {key}", "setting")
    if "spark.wap.id" in draft.settings or "spark.wap.branch" in draft.settings:
        return None
    value = "w1" if key == "spark.wap.id" else chance.choice(("audit", "w2"))
    draft.settings[key] = value
    return Statement(f"SET {key}={value}", "setting")
