"""The short form: a seeded campaign on each database, under each kind of fault that it has."""

import pytest

from ..account import Plan
from .campaign import run

_OPERATIONS = 80
_FAULTS = 5


@pytest.mark.parametrize(("place", "seed"), [("sqlite", 11), ("postgresql", 12)])
def test_what_is_acknowledged_is_there_once_and_learned_once_whatever_fails(place: str, seed: int) -> None:
    (account,) = run(Plan(seed, _OPERATIONS * 2, _FAULTS * 2, place))
    assert account.findings == []
    assert account.operations.total() >= _OPERATIONS - _FAULTS
    assert account.faults.total() > 0
