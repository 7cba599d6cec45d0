"""Ids of pairs: the readable form where it can be read in one way only, and never one id for two pairs."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import SessionManager, SQLiteSession
from recollect.sessions.manager import SessionIds
from recollect.testing.contract import in_event_loop, message, texts

from ..histories import quick

TYPES = ("default", "support", "customer_support")


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("u", "customer_support"), "u_customer_support"),
        (("user_001", "default"), "user_001_default"),
        (("user_001", "customer_support"), "user_001_customer_support"),
        (("u_customer", "support"), "u_customer_%%support"),
        (("u", "not_declared"), "u_not%5Fdeclared"),
        (("u_customer", "other"), "u_customer_other"),
        (("customer", "support"), "customer_support"),
    ],
)
def test_a_declared_type_keeps_the_readable_form(pair: tuple[str, str], expected: str) -> None:
    assert SessionIds(TYPES).id_of(*pair) == expected
    assert SessionIds(TYPES).forms_of(*pair)[0] == expected


def test_without_declared_types_ids_are_as_they_were() -> None:
    ids = SessionIds()
    assert ids.id_of("u", "customer_support") == "u_customer%5Fsupport"
    assert ids.id_of("u_customer", "support") == "u_customer_support"


words = st.text("ab_%25F", min_size=1, max_size=7)
declared = st.lists(st.text("ab_25F", min_size=1, max_size=5), max_size=4)


@quick
@given(declared, st.tuples(words, words), st.tuples(words, words))
def test_no_two_pairs_share_an_id(types: list[str], one: tuple[str, str], other: tuple[str, str]) -> None:
    ids = SessionIds(types)
    assert (ids.id_of(*one) == ids.id_of(*other)) == (one == other)


@quick
@given(declared, words, words, words)
def test_no_two_types_of_a_user_share_a_form(types: list[str], user: str, one: str, other: str) -> None:
    ids = SessionIds(types)
    shared = {*ids.forms_of(user, one)} & {*ids.forms_of(user, other)}
    assert bool(shared) == (one == other)


def test_no_two_short_pairs_share_an_id_whatever_is_declared() -> None:
    names = ["".join(each) for length in (1, 2, 3) for each in itertools.product("a_%", repeat=length)]
    for types in ((), ("a",), ("a_a",), ("a", "a_a", "_"), ("_a", "a_")):
        made = {SessionIds(types).id_of(*pair) for pair in itertools.product(names, repeat=2)}
        assert len(made) == len(names) ** 2


@pytest.mark.parametrize("types", ["support", [""], [7], ["a%b"]])
def test_types_that_cannot_be_declared_are_refused(types: Any) -> None:
    with pytest.raises(ValueError, match="session_types"):
        SessionIds(types)


# --- finding ---


@pytest.fixture
def open_manager(tmp_path: Path) -> Callable[..., SessionManager]:
    return lambda *types: SessionManager(tmp_path / "sessions.db", session_types=types)


@in_event_loop
async def test_sessions_of_the_seeds_manager_are_found(
    tmp_path: Path, open_manager: Callable[..., SessionManager]
) -> None:
    theirs = agents.SQLiteSession("u_customer_support", tmp_path / "sessions.db")
    await theirs.add_items([message("kept")])  # type: ignore[list-item]
    theirs.close()
    manager = open_manager(*TYPES)
    assert texts(await manager.get_session("u", "customer_support").get_items()) == ["kept"]
    assert await manager.get_session("u_customer", "support").get_items() == []
    manager.close()


@pytest.mark.parametrize("before", [(), TYPES])
@in_event_loop
async def test_a_session_is_found_under_the_id_it_had_with_other_types(
    open_manager: Callable[..., SessionManager], before: tuple[str, ...]
) -> None:
    earlier = open_manager(*before)
    pairs = [("u", "customer_support"), ("u_customer", "support"), ("u", "default")]
    for pair in pairs:
        await earlier.get_session(*pair).add_items([message(pair)])
    earlier.close()
    later = open_manager(*(() if before else TYPES))
    for pair in pairs:
        session = await later.find_session(*pair)
        assert texts(await session.get_items()) == [str(pair)]
        assert await later.find_session(*pair) is session
        later.close_session(*pair)
        assert session.closed
    assert await (await later.find_session("new", "customer_support")).get_items() == []
    later.close()


@in_event_loop
async def test_a_session_of_another_user_is_not_found(
    tmp_path: Path, open_manager: Callable[..., SessionManager]
) -> None:
    manager = open_manager()
    await manager.get_session("u_customer", "support").add_items([message("theirs")])
    async with SQLiteSession("v_customer_support", tmp_path / "sessions.db") as nobodys:
        await nobodys.add_items([message("of nobody known")])
    assert await (await manager.find_session("u", "customer_support")).get_items() == []
    assert await (await manager.find_session("v", "customer_support")).get_items() == []
    manager.close()
