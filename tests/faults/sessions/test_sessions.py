"""The short form: every backend keeps its promises while clients, servers, connections and disks fail."""

from collections.abc import Iterator

import pytest

from ..account import Plan
from .arenas import Servers
from .campaign import run_place
from .places import PLACES, Place

SEED = 10


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with Servers() as started:
        yield started


# The driver asyncpg is also that of the advanced sessions.
SHORT = [place for place in PLACES if place.name != "postgresql-asyncpg"]


@pytest.mark.timeout(600)  # more than the harness waits for whatever hangs, so that it can tell
@pytest.mark.parametrize("place", SHORT, ids=lambda place: place.name)
def test_nothing_acknowledged_is_lost_doubled_or_reordered_whatever_fails(
    place: Place, servers: Servers
) -> None:
    account = run_place(place, Plan(SEED, operations=3_000, faults=50), servers)
    assert account.findings == []
    assert account.faults["client killed"] >= 1
    assert account.operations.total() >= 150
