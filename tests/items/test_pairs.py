from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import (
    CALL_KINDS,
    Item,
    broken_histories,
    call_and_output,
    handoff,
    histories,
    is_injected,
    odd_items,
    quick,
)
from recollect.items import (
    Pairs,
    find_orphans,
    group_items,
    is_call,
    is_from_model,
    is_output,
    is_reasoning,
    is_user_message,
    keep_whole_groups,
    newest_whole,
    pair_calls,
    reasoning_owners,
    turn_starts,
)
from recollect.items.shapes import OUTPUT_TYPE_OF_CALL

HI: Item = {"role": "user", "content": "hi"}
HELLO: Item = {"type": "message", "role": "assistant", "content": "hello"}
SEARCH: Item = {"type": "web_search_call", "id": "ws_1"}

anything = histories() | broken_histories() | st.lists(odd_items(), max_size=6)


def thought(name: str = "rs_1") -> Item:
    return {"type": "reasoning", "id": name, "summary": []}


def call(name: str) -> Item:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}


def output(name: str) -> Item:
    return {"type": "function_call_output", "call_id": name, "output": "done"}


def shared_id(item: Item) -> object:
    """The id that joins a call and its output, said again for the test's sake."""
    if item["type"] == "mcp_approval_response":
        return item["approval_request_id"]
    if item["type"] in ("mcp_approval_request", "local_shell_call_output"):
        return item["id"]
    return item["call_id"]


def positions(part: list[Item], whole: list[Item]) -> list[int]:
    """Where the very objects of a part stand in the whole."""
    place = {id(item): index for index, item in enumerate(whole)}
    return [place[id(item)] for item in part]


def without_orphans(items: list[Item]) -> list[Item]:
    orphans = find_orphans(items)
    return [item for index, item in enumerate(items) if index not in orphans]


# pair_calls


@quick
@given(anything)
def test_every_call_and_every_output_is_accounted_for_once(items: list[Item]) -> None:
    pairs = pair_calls(items)
    outputs = [index for matched in pairs.outputs_of.values() for index in matched]
    indexes = range(len(items))
    assert sorted([*pairs.outputs_of, *pairs.open_calls]) == [n for n in indexes if is_call(items[n])]
    assert sorted([*outputs, *pairs.orphan_outputs]) == [n for n in indexes if is_output(items[n])]


@quick
@given(histories() | broken_histories())
def test_an_output_belongs_to_the_latest_call_before_it_of_its_kind_and_id(items: list[Item]) -> None:
    pairs = pair_calls(items)
    owner = {answer: asked for asked, answers in pairs.outputs_of.items() for answer in answers}
    for index, item in enumerate(items):
        if is_output(item):
            candidates = [
                earlier
                for earlier in range(index)
                if OUTPUT_TYPE_OF_CALL.get(items[earlier].get("type", "")) == item["type"]
                and shared_id(items[earlier]) == shared_id(item)
            ]
            assert owner.get(index) == (candidates[-1] if candidates else None)


@quick
@given(histories(open_end=False))
def test_in_a_finished_history_every_call_has_its_one_output(items: list[Item]) -> None:
    pairs = pair_calls(items)
    assert pairs.open_calls == pairs.orphan_outputs == []
    assert all(len(outputs) == 1 for outputs in pairs.outputs_of.values())


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_a_call_of_every_kind_is_joined_with_its_output(kind: str) -> None:
    asked, answer = call_and_output(kind, "call_1")
    assert pair_calls([asked, answer]) == Pairs({0: [1]}, [], [])
    assert pair_calls([answer, asked]) == Pairs({}, [1], [0])


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_the_same_id_on_another_kind_joins_nothing(kind: str) -> None:
    asked, _ = call_and_output(kind, "call_1")
    for other in {*CALL_KINDS} - {kind}:
        _, answer = call_and_output(other, "call_1")
        assert pair_calls([asked, answer]) == Pairs({}, [0], [1])


def test_parallel_calls_may_be_answered_in_any_order() -> None:
    items = [call("a"), call("b"), output("b"), output("a")]
    assert pair_calls(items) == Pairs({0: [3], 1: [2]}, [], [])


def test_a_call_id_may_be_used_again_in_a_later_turn() -> None:
    items = [HI, call("a"), output("a"), HI, call("a"), output("a"), HI, call("a")]
    assert pair_calls(items) == Pairs({1: [2], 4: [5]}, [7], [])


def test_the_output_of_a_local_shell_call_may_name_it_either_way() -> None:
    asked = {"type": "local_shell_call", "id": "ls_1", "call_id": "call_1", "action": {}}
    by_id = {"type": "local_shell_call_output", "id": "call_1", "output": "x"}
    by_call_id = {"type": "local_shell_call_output", "call_id": "call_1", "output": "x"}
    both = {**by_call_id, "id": "lso_1"}
    assert pair_calls([asked, by_id, by_call_id, both]) == Pairs({0: [1, 2, 3]}, [], [])


def test_a_handoff_is_a_call_like_any_other() -> None:
    assert pair_calls(handoff("call_1")) == Pairs({0: [1]}, [], [])


def test_searches_for_tools_that_the_server_made_have_no_id_and_are_joined_one_to_one() -> None:
    asked, answer = ({"type": kind, "call_id": None} for kind in ("tool_search_call", "tool_search_output"))
    assert pair_calls([asked, answer, asked, answer]) == Pairs({0: [1], 2: [3]}, [], [])
    assert pair_calls([asked, asked, answer, answer]).open_calls == []


def test_no_id_is_not_an_id_called_none() -> None:
    asked = {"type": "function_call", "name": "f", "arguments": "{}"}
    assert pair_calls([asked, output("None")]) == Pairs({}, [0], [1])


# reasoning_owners


@quick
@given(anything)
def test_a_thought_belongs_to_what_the_model_made_right_after_it(items: list[Item]) -> None:
    owners = reasoning_owners(items)
    assert sorted(owners) == [index for index, item in enumerate(items) if is_reasoning(item)]
    for index, followers in owners.items():
        rest = range(index + 1, len(items))
        first = next((n for n in rest if not is_reasoning(items[n])), len(items))
        expected = []
        for n in range(first, len(items)):
            if is_reasoning(items[n]) or not is_from_model(items[n]):
                break
            expected.append(n)
        assert followers == expected


@pytest.mark.parametrize(
    ("items", "owners"),
    [
        ([thought(), HELLO], {0: [1]}),
        ([thought(), call("a"), call("b"), output("a"), output("b"), HELLO], {0: [1, 2]}),
        ([thought("x"), thought("y"), call("a"), output("a")], {0: [2], 1: [2]}),
        ([thought("x"), call("a"), thought("y"), call("b"), output("a")], {0: [1], 2: [3]}),
        ([thought(), SEARCH, HELLO], {0: [1, 2]}),
        ([HELLO, thought()], {1: []}),
        ([thought(), HI, HELLO], {0: []}),
        ([thought(), output("a"), HELLO], {0: []}),
        ([HI, HELLO], {}),
    ],
)
def test_whose_thoughts_these_are(items: list[Item], owners: dict[int, list[int]]) -> None:
    assert reasoning_owners(items) == owners


# group_items


@quick
@given(anything)
def test_two_items_are_in_one_group_if_a_chain_of_belonging_joins_them(items: list[Item]) -> None:
    group = [{index} for index in range(len(items))]
    for links in (pair_calls(items).outputs_of, reasoning_owners(items)):
        for one, others in links.items():
            for other in others:
                joined = group[one] | group[other]
                for member in joined:
                    group[member] = joined
    numbers = group_items(items)
    assert len(numbers) == len(items)
    for index, number in enumerate(numbers):
        assert {n for n, other in enumerate(numbers) if other == number} == group[index]


def test_a_thought_its_parallel_calls_and_their_outputs_are_one_group() -> None:
    items = [HI, thought(), call("a"), call("b"), output("b"), output("a"), HELLO]
    hi, *group, hello = group_items(items)
    assert len(set(group)) == 1
    assert len({hi, group[0], hello}) == 3


# keep_whole_groups and newest_whole


@quick
@given(anything, st.data())
def test_keeping_whole_groups_makes_no_orphan(items: list[Item], data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.integers(0, max(len(items) - 1, 0))))
    assert_whole(keep_whole_groups(items, kept), items, kept)


@quick
@given(anything)
def test_the_newest_are_few_enough_and_whole_for_every_count(items: list[Item]) -> None:
    for count in range(len(items) + 2):
        newest = newest_whole(items, count)
        assert len(newest) <= count
        assert_whole(newest, items, set(range(max(len(items) - count, 0), len(items))))


def assert_whole(part: list[Item], items: list[Item], kept: set[int]) -> None:
    """A part in order, of what was to be kept, without orphans of its own making, and not too small."""
    places = positions(part, items)
    assert all(one < other for one, other in pairwise(places))
    assert {*places} <= kept
    for spare in (True, False):
        orphans = {places[n] for n in find_orphans(part, spare_newest_turn=spare)}
        assert orphans <= {*find_orphans(items, spare_newest_turn=spare)}
    groups = group_items(items)
    torn = {group for index, group in enumerate(groups) if index not in kept}
    assert {index for index in kept if index < len(items) and groups[index] not in torn} == {*places}


@quick
@given(histories())
def test_a_well_formed_history_stays_so_however_it_is_cut(items: list[Item]) -> None:
    for count in range(len(items) + 1):
        assert find_orphans(newest_whole(items, count)) == []


@quick
@given(anything)
def test_all_of_it_is_all_of_it(items: list[Item]) -> None:
    assert newest_whole(items, len(items)) == newest_whole(items, len(items) + 7) == items
    assert keep_whole_groups(items, range(len(items))) == items
    assert newest_whole(items, 0) == newest_whole(items, -1) == keep_whole_groups(items, ()) == []


def test_a_group_that_does_not_fit_is_left_out_and_what_is_newer_stays() -> None:
    items = [HI, thought(), call("a"), output("a"), HELLO]
    assert newest_whole(items, 5) == items
    assert newest_whole(items, 4) == items[1:]
    assert newest_whole(items, 3) == newest_whole(items, 2) == newest_whole(items, 1) == [HELLO]


def test_what_stands_between_a_call_and_its_output_is_not_dropped_with_them() -> None:
    items = [call("a"), HELLO, output("a")]
    assert newest_whole(items, 2) == [HELLO]
    assert keep_whole_groups(items, {1, 2}) == [HELLO]
    assert keep_whole_groups(items, {0, 2}) == [items[0], items[2]]


def test_calls_of_one_thought_go_together() -> None:
    items = [thought(), call("a"), call("b"), output("a"), output("b")]
    assert keep_whole_groups(items, {0, 2, 4}) == []


# find_orphans


@quick
@given(histories())
def test_a_well_formed_history_has_no_orphans(items: list[Item]) -> None:
    assert find_orphans(items) == []


@quick
@given(histories(open_end=False))
def test_a_finished_history_has_none_even_if_the_newest_turn_is_not_spared(items: list[Item]) -> None:
    assert find_orphans(items, spare_newest_turn=False) == []


@quick
@given(histories(open_end=True))
def test_an_open_call_in_the_newest_turn_is_an_orphan_only_if_asked(items: list[Item]) -> None:
    orphans = find_orphans(items, spare_newest_turn=False)
    [open_call] = pair_calls(items).open_calls
    assert open_call in orphans
    assert all(is_reasoning(items[index]) for index in orphans if index != open_call)
    assert min(orphans) > turn_starts(items)[-1]


@quick
@given(broken_histories())
def test_every_injected_orphan_is_found(items: list[Item]) -> None:
    injected = {index for index, item in enumerate(items) if is_injected(item)}
    assert injected
    assert injected <= {*find_orphans(items)}


@quick
@given(anything)
def test_dropping_the_orphans_once_leaves_none(items: list[Item]) -> None:
    assert find_orphans(without_orphans(items)) == []


@quick
@given(anything)
def test_orphans_are_calls_outputs_or_thoughts_and_never_messages(items: list[Item]) -> None:
    orphans = find_orphans(items)
    assert orphans == sorted(set(orphans))
    assert all(is_call(items[n]) or is_output(items[n]) or is_reasoning(items[n]) for n in orphans)
    assert not any(is_user_message(items[n]) for n in orphans)


@pytest.mark.parametrize(
    ("items", "orphans"),
    [
        ([], []),
        ([output("a"), HI], [0]),
        ([HI, call("a"), HI], [1]),
        ([HI, HI, call("a")], []),
        ([call("a")], []),
        ([HI, thought()], [1]),
        ([HI, thought(), HI, HELLO], [1]),
        ([HI, thought("x"), thought("y"), HI], [1, 2]),
        ([HI, thought(), call("a"), HI], [1, 2]),
        ([HI, thought(), call("a")], []),
        ([HI, thought(), call("a"), call("b"), output("b"), HI], [2]),
        ([HI, thought(), output("a"), HELLO], [1, 2]),
        ([HI, SEARCH, HI, {"type": "from_the_future"}], []),
    ],
)
def test_what_a_model_would_refuse(items: list[Item], orphans: list[int]) -> None:
    assert find_orphans(items) == orphans
