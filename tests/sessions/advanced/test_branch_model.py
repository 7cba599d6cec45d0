"""Whatever is done to branches, in whatever order: each shows what a list of its own would."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import (
    AdvancedSQLiteSession,
    InMemorySession,
    compress_history,
    is_user_message,
    repair,
    undo_items,
    undo_turn,
)

from ...histories import Item, call_and_output, quick
from .database import assert_consistent, histories, said

pytestmark = pytest.mark.proof

Operation = tuple[str, Any]
NAMES = ["main", "a", "b", "c"]


def operations() -> st.SearchStrategy[list[Operation]]:
    """What a user may do, in any order, with names and turns that are there and that are not."""
    kinds = st.sampled_from(["user", "assistant", "call", "output", "system"])
    name, turn = st.sampled_from(NAMES), st.integers(0, 4)
    operation = st.one_of(
        st.tuples(st.just("add"), st.lists(kinds, min_size=1, max_size=4)),
        st.tuples(st.just("add"), st.lists(kinds, min_size=1, max_size=4)),
        st.tuples(st.just("branch"), st.tuples(turn, name)),
        st.tuples(st.just("branch"), st.tuples(turn, name)),
        st.tuples(st.just("switch"), name),
        st.tuples(st.just("delete"), st.tuples(name, st.booleans())),
        st.tuples(st.just("pop"), st.none()),
        st.tuples(st.just("clear"), st.sampled_from([False, False, True])),
        st.tuples(st.just("drop"), st.integers(0, 6)),
        st.tuples(st.just("rewrite"), st.sampled_from(sorted(REWRITES))),
    )
    return st.lists(operation, min_size=1, max_size=25)


REWRITES: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "repair": repair,
    "undo a turn": undo_turn,
    "undo two items": lambda session: undo_items(session, 2),
    "compress": lambda session: compress_history(session, 4),
    "replace": lambda session: session.replace_items([said("user", "anew")]),
}


class Model:
    """Branches as lists."""

    def __init__(self) -> None:
        self.branches: dict[str, list[Item]] = {"main": []}
        self.current = "main"

    @property
    def items(self) -> list[Item]:
        return self.branches[self.current]

    async def do(self, kind: str, argument: Any) -> None:
        """The same as on the session; what is refused is a `ValueError` here too."""
        await getattr(self, kind)(argument)

    async def add(self, items: list[Item]) -> None:
        self.items.extend(items)

    async def branch(self, argument: tuple[int, str]) -> None:
        turn, name = argument
        starts = [number for number, item in enumerate(self.items) if is_user_message(item)]
        if not 1 <= turn <= len(starts) or name in self.branches:
            raise ValueError
        self.branches[name] = self.items[: starts[turn - 1]]
        self.current = name

    async def switch(self, name: str) -> None:
        if name not in self.branches:
            raise ValueError
        self.current = name

    async def delete(self, argument: tuple[str, bool]) -> None:
        name, force = argument
        if name == "main" or name not in self.branches or (name == self.current and not force):
            raise ValueError
        del self.branches[name]
        self.current = "main" if name == self.current else self.current

    async def pop(self, _argument: None) -> None:
        if self.items:
            self.items.pop()

    async def clear(self, all_branches: bool) -> None:
        if all_branches:
            self.__init__()  # type: ignore[misc]
        self.items.clear()

    async def drop(self, number: int) -> None:
        del self.items[number : number + 1]

    async def rewrite(self, name: str) -> None:
        beside = InMemorySession("s")
        await beside.add_items(self.items)
        await REWRITES[name](beside)
        self.branches[self.current] = await beside.get_items()


async def do(session: Any, kind: str, argument: Any) -> None:
    """An operation on the session under test."""
    if kind == "add":
        await session.add_items(argument)
    elif kind == "branch":
        assert await session.create_branch_from_turn(*argument) == argument[1]
    elif kind == "switch":
        await session.switch_to_branch(argument)
    elif kind == "delete":
        await session.delete_branch(argument[0], force=argument[1])
    elif kind == "pop":
        await session.pop_item()
    elif kind == "clear":
        await session.clear_session(all_branches=argument)
    elif kind == "drop":
        await session.transform_items(lambda items: items[:argument] + items[argument + 1 :])
    else:
        await REWRITES[argument](session)


@quick
@given(operations())
def test_every_branch_shows_what_a_list_of_its_own_would(story: list[Operation]) -> None:
    asyncio.run(play(story))


async def play(story: list[Operation]) -> None:
    model, numbers = Model(), itertools.count()
    async with AdvancedSQLiteSession(session_id="s") as session:
        for kind, given_argument in story:
            argument = (
                [made(each, next(numbers)) for each in given_argument] if kind == "add" else given_argument
            )
            await assert_same_outcome(session, model, kind, argument)
            await assert_same_branches(session, model)
        await assert_consistent(session)


def made(kind: str, number: int) -> Item:
    if kind in ("call", "output"):
        return call_and_output("function_call", f"call_{number // 2}")[kind == "output"]
    return said(kind, number)


async def assert_same_outcome(session: Any, model: Model, kind: str, argument: Any) -> None:
    refused = False
    try:
        await model.do(kind, argument)
    except ValueError:
        refused = True
    if not refused:
        return await do(session, kind, argument)
    with suppress(ValueError):
        await do(session, kind, argument)
        raise AssertionError(f"{kind} {argument} was not refused")
    return None


async def assert_same_branches(session: Any, model: Model) -> None:
    listed = {branch.pop("branch_id"): branch for branch in await session.list_branches()}
    is_there = any(model.branches.values()) or len(model.branches) > 1
    assert sorted(listed) == (sorted(model.branches) if is_there else [])
    assert await histories(session) == {name: model.branches[name] for name in listed}
    assert await session.current_branch() == model.current
    for name, branch in listed.items():
        users = sum(map(is_user_message, model.branches[name]))
        assert branch["message_count"] == len(model.branches[name])
        assert branch["user_turns"] == users
        assert branch["is_current"] == (name == model.current)
        turns = await session.get_conversation_turns(name)
        assert [turn["turn"] for turn in turns] == list(range(1, users + 1))
