"""Requests at once: in all, of a tenant, of a key."""

from contextlib import ExitStack

import pytest

from recollect.server.access.authentication import Caller
from recollect.server.access.limits import SlotLimits, Slots
from recollect.server.problems import Problem

ANN, BOB = Caller("acme", "write", "ann"), Caller("acme", "write", "bob")
EVE = Caller("other", "write", "eve")
OPEN = Caller("default", "admin", None)


def taken(slots: Slots, held: ExitStack, caller: Caller, tries: int = 20) -> int:
    """How many slots a caller gets before it is refused."""
    for number in range(tries):
        try:
            held.enter_context(slots.hold(caller))
        except Problem:
            return number
    return tries


def test_a_key_and_a_tenant_get_their_shares_and_others_the_rest() -> None:
    slots = Slots(SlotLimits(total=10, per_tenant=8, per_key=5))
    with ExitStack() as held:
        assert [taken(slots, held, caller) for caller in (ANN, BOB, EVE)] == [5, 3, 2]
        refusals = []
        for caller in (ANN, BOB, EVE):
            with pytest.raises(Problem) as raised, slots.hold(caller):
                raise AssertionError
            refusals.append((raised.value.code, raised.value.status, raised.value.headers["Retry-After"]))
        limited, overloaded = ("concurrency_limited", 429, "1"), ("overloaded", 503, "1")
        assert refusals == [limited, limited, overloaded]
    assert len(slots) == 0
    with ExitStack() as held:
        assert taken(slots, held, EVE) == 5, "all are free again"


def test_without_keys_there_is_one_caller_who_has_all() -> None:
    slots = Slots(SlotLimits(total=10, per_tenant=8, per_key=5))
    with ExitStack() as held:
        assert taken(slots, held, OPEN) == 10


@pytest.mark.parametrize(("total", "expected"), [(1000, (800, 500)), (10, (8, 5)), (1, (1, 1))])
def test_shares_are_of_the_total_and_one_at_least(total: int, expected: tuple[int, int]) -> None:
    limits = SlotLimits.of_shares(total, 0.8, 0.5)
    assert (limits.per_tenant, limits.per_key) == expected
