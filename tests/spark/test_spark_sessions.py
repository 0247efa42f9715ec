"""Clones of sessions: with other settings, and made once where nobody sets a session anew."""

import gc
import weakref
from typing import Any

from icefloe.spark.spark_sessions import clone_with, held_clone, hold_clones

CASE, PARTS = "spark.sql.caseSensitive", "spark.sql.shuffle.partitions"


def test_a_session_that_is_set_anew_gives_new_clones(spark: Any) -> None:
    first = held_clone(spark, {CASE: "true"})
    before = spark.conf.get(PARTS)
    spark.conf.set(PARTS, "17")
    try:
        second = held_clone(spark, {CASE: "true"})
    finally:
        spark.conf.set(PARTS, before)
    assert first is not second
    assert (first.conf.get(PARTS), second.conf.get(PARTS)) == (before, "17")
    assert second.conf.get(CASE) == "true"


def test_clones_are_held_by_their_settings(spark: Any) -> None:
    session = hold_clones(clone_with(spark, {}))
    one = held_clone(session, {CASE: "true", PARTS: "3"})
    assert held_clone(session, {PARTS: "3", CASE: "true"}) is one
    other = held_clone(session, {CASE: "true", PARTS: "4"})
    assert other is not one
    assert (one.conf.get(PARTS), other.conf.get(PARTS)) == ("3", "4")
    assert hold_clones(session) is session
    assert held_clone(session, {CASE: "true", PARTS: "3"}) is one


def test_clones_go_with_their_session(spark: Any) -> None:
    session = hold_clones(clone_with(spark, {}))
    clone = weakref.ref(held_clone(session, {PARTS: "3"}))
    assert clone() is not None
    del session
    # PySpark itself holds the session that was made last.
    newest = clone_with(spark, {})
    gc.collect()
    assert clone() is None
    assert newest.conf.get(PARTS) != "3"
