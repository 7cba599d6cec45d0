from hypothesis import given
from hypothesis import strategies as st

from histories import Item, broken_histories, histories, odd_items, quick
from recollect.items import is_user_message, split_turns, turn_starts

SYSTEM: Item = {"role": "system", "content": "Be brief."}
HI: Item = {"role": "user", "content": "hi"}
HELLO: Item = {"type": "message", "role": "assistant", "content": "hello"}

anything = histories() | broken_histories() | st.lists(odd_items(), max_size=5)


@quick
@given(anything)
def test_the_turns_together_are_the_history(items: list[Item]) -> None:
    assert [item for turn in split_turns(items) for item in turn] == items


@quick
@given(anything)
def test_every_turn_after_the_first_starts_with_its_one_user_message(items: list[Item]) -> None:
    before, *turns = split_turns(items)
    assert not any(map(is_user_message, before))
    for turn in turns:
        assert [is_user_message(item) for item in turn] == [True] + [False] * (len(turn) - 1)


@quick
@given(anything)
def test_turn_starts_are_where_the_turns_start(items: list[Item]) -> None:
    before, *turns = split_turns(items)
    starts = turn_starts(items)
    assert [items[start] for start in starts] == [turn[0] for turn in turns]
    assert starts == sorted(set(starts))
    assert starts[:1] in ([], [len(before)])


def test_what_stands_before_the_first_user_message_is_turn_0() -> None:
    assert split_turns([SYSTEM, HI, HELLO, HI]) == [[SYSTEM], [HI, HELLO], [HI]]


def test_turn_0_is_there_also_when_it_is_empty() -> None:
    assert split_turns([]) == [[]]
    assert split_turns([HI]) == [[], [HI]]
    assert split_turns([SYSTEM]) == [[SYSTEM]]


def test_a_tuple_of_items_gives_lists() -> None:
    assert split_turns((SYSTEM, HI)) == [[SYSTEM], [HI]]


def test_a_user_role_on_something_that_is_no_message_starts_no_turn() -> None:
    tools = {"type": "additional_tools", "role": "user", "tools": []}
    assert turn_starts([HI, tools, {"type": "message", "role": "user", "content": []}]) == [0, 2]


def test_the_history_is_left_as_it_was() -> None:
    items = [SYSTEM, HI, HELLO]
    split_turns(items)[1].clear()
    assert items == [SYSTEM, HI, HELLO]
