"""The short form: seeded episodes on each database, under some of the faults that it has."""

import pytest

from ..account import Plan
from .campaign import episodes_of, replay_of, run_at

_SIZES = {"sqlite": (120, 5), "postgresql": (40, 3)}
"""Operations and faults of an episode."""
_SEEDS = [("sqlite", [53]), ("postgresql", [12, 13])]
"""Odd ones learn by a model. The first fault of 53 is a kill: it takes effect however slow the machine is."""


@pytest.mark.timeout(600)  # longer than the campaign waits, so that it can say what is stuck
@pytest.mark.parametrize(("place", "seeds"), _SEEDS)
def test_what_is_acknowledged_is_there_once_and_learned_once_whatever_fails(
    place: str, seeds: list[int]
) -> None:
    operations, faults = _SIZES[place]
    account = run_at(place, seeds, operations, faults)
    assert account.findings == []
    assert account.operations.total() >= (operations - faults) * len(seeds)
    assert account.faults.total() > 0


@pytest.mark.parametrize("size", [(160, 10), (14_999, 3), (25_000, 40), (100_000, 300)])
def test_the_command_that_is_printed_does_the_same_episode_again(size: tuple[int, int]) -> None:
    seeds, operations, faults = episodes_of(Plan(7, *size))
    typed = replay_of("sqlite", seeds[-1], operations, faults).split()
    asked = {what: int(typed[typed.index(f"--{what}") + 1]) for what in ("seed", "operations", "faults")}
    assert episodes_of(Plan(**asked, only="sqlite")) == (range(seeds[-1], seeds[-1] + 1), operations, faults)
