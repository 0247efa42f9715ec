"""We write, the peer reads: every scenario in every version by every peer gives our rows, or fails as the peer declares."""

import re
from collections.abc import Callable

import pytest

from tests.peers.comparing import comparable
from tests.peers.engines import PEERS, Peer, cells, ours
from tests.peers.scenarios import Made

DIFFERENT = "rows differ"


def check_ours(made: Made) -> None:
    """We read the rows that there must be."""
    for read in made.reads:
        assert sorted(ours(made.table, read)["id"].to_pylist()) == sorted(read.ids)


def check_theirs(peer: Peer, made: Made) -> None:
    """The peer reads them too: whole rows where all are wanted, ids where some are."""
    for read in made.reads:
        if read.where is None:
            expected, found = ours(made.table, read), peer.read(made.table, read)
            assert found.schema.names == expected.schema.names
            assert comparable(found, schema=expected.schema) == comparable(expected), DIFFERENT
    some = [(read.where, sorted(read.ids)) for read in made.reads if read.where is not None]
    if some:
        found = peer.matching(made.table, [where for where, _ in some])
        assert dict(zip((where for where, _ in some), found, strict=True)) == dict(some), DIFFERENT


@pytest.mark.cell(direction="we write")
@pytest.mark.parametrize(("peer", "scenario", "version"), cells())
def test_we_write_and_the_peer_reads(
    peers: Callable[[str], Peer], made: Callable[[str, int], Made], peer: str, scenario: str, version: int
) -> None:
    reader, table = peers(peer), made(scenario, version)
    check_ours(table)
    inability = PEERS[peer].inability(scenario, version)
    if inability is None:
        check_theirs(reader, table)
        return
    try:
        check_theirs(reader, table)
    except Exception as error:  # noqa: BLE001 - peers fail in ways of their own
        text = f"{type(error).__name__}: {error}"
        assert re.search(DIFFERENT if inability.match is None else inability.match, text), text
    else:
        pytest.fail(
            f"{peer} reads {scenario} in v{version} now: take {inability.reason!r} out of tests/peers/engines.py"
        )
