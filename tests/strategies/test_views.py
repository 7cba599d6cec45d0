"""Views: pairs stay whole, kept items are unchanged, and building a view twice gives the same result."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import broken_histories, histories, odd_items, quick
from recollect import estimate_tokens, find_orphans, split_turns
from recollect.items import pair_calls
from recollect.sessions.history import repair_items
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import view_of

from .generated import history

Item = dict[str, Any]

HISTORIES = 10_000
STRATEGIES: dict[str, Strategy] = {
    "trim": Trim(4, 2),
    "trim to the maximum": Trim(3),
    "trim by tokens": Trim(token_budget=400),
    "summarize": Summarize(4, 2),
    "summarize by tokens": Summarize(token_budget=600, keep_last_user_turns=1),
    "compact": Compact(4, 2),
    "compact inputs too": Compact(3, 1, clear_tool_inputs=True),
    "compact by tokens": Compact(token_budget=400, keep=1, exclude_tools=("shell",)),
}


def view(items: list[Item], strategy: Strategy) -> list[Item]:
    summary = "They spoke of parcels." if isinstance(strategy, Summarize) else None
    return view_of(items, strategy, summary=summary)


def without_summary(shown: list[Item], strategy: Strategy) -> list[Item]:
    if not isinstance(strategy, Summarize):
        return shown
    marked = {"role": "user", "content": strategy.summary_prefix}
    if marked not in shown:
        return shown
    at = shown.index(marked)
    assert shown[at + 1] == {"role": "assistant", "content": "They spoke of parcels."}
    return shown[:at] + shown[at + 2 :]


@pytest.mark.proof
@pytest.mark.parametrize("part", range(8))
def test_ten_thousand_histories_and_no_orphan(part: int) -> None:
    """Every history with every strategy. Each test has part of the seeds, so that they run in parallel."""
    for seed in range(part, HISTORIES, 8):
        items = history(seed)
        assert not find_orphans(items, spare_newest_turn=False)
        for name, strategy in STRATEGIES.items():
            orphans = find_orphans(view(items, strategy), spare_newest_turn=False)
            assert not orphans, f"history {seed} under {name}"


USER = {"role": "user", "content": "go on"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "done"}
OTHER_CALL = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""}


@pytest.mark.parametrize(
    "items",
    [
        [USER, CALL, USER, OTHER_CALL, OUTPUT],
        [USER, CALL, USER, CALL, OUTPUT, USER, OUTPUT],
        [USER, CALL, USER, {**CALL, "call_id": None, "id": "c"}, OUTPUT],
    ],
    ids=["by a call of another kind", "in an earlier turn", "by the id of an item"],
)
def test_the_output_of_a_call_that_was_cut_goes_with_it_though_its_id_is_used_again(
    items: list[Item],
) -> None:
    assert not pair_calls(items).orphan_outputs
    for turns in (1, 2):
        assert not pair_calls(view(items, Trim(turns))).orphan_outputs


def check_view(items: list[Item], strategy: Strategy) -> None:
    before = copy.deepcopy(items)
    shown = view(items, strategy)
    assert items == before, "nothing was changed in place"
    if isinstance(strategy, Compact):
        check_compacted(items, shown, strategy)
    else:
        check_trimmed(items, without_summary(shown, strategy))


def check_trimmed(items: list[Item], shown: list[Item]) -> None:
    """The head and the newest whole turns, without items that lost their counterpart."""
    head, *turns = split_turns(items)
    kept = len(split_turns(shown)) - 1
    whole = head + [item for turn in turns[len(turns) - kept :] for item in turn]
    assert shown == (repair_items(whole)[0] if find_orphans(whole) and shown != whole else whole)


def check_compacted(items: list[Item], shown: list[Item], strategy: Compact) -> None:
    assert len(shown) == len(items)
    for item, seen in zip(items, shown, strict=True):
        for field in ("type", "role", "id", "call_id", "approval_request_id", "name", "status"):
            assert item.get(field) == seen.get(field)
        assert item.keys() == seen.keys()
    last = [item for turn in split_turns(items)[1:][-strategy.keep :] for item in turn]
    assert shown[len(shown) - len(last) :] == last, "the last turns byte for byte"
    assert pair_calls(shown) == pair_calls(items)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_what_is_kept_is_kept_byte_for_byte(strategy: Strategy) -> None:
    for seed in range(300):
        check_view(history(seed), strategy)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
@quick
@given(items=histories(max_turns=7))
def test_histories_of_every_kind(strategy: Strategy, items: list[Item]) -> None:
    check_view(items, strategy)
    assert find_orphans(view(items, strategy)) == find_orphans(items) == []


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
@quick
@given(items=broken_histories() | st.lists(odd_items(), max_size=12))
def test_what_is_broken_or_odd_breaks_no_view(strategy: Strategy, items: list[Item]) -> None:
    before = copy.deepcopy(items)
    shown = view(items, strategy)
    assert items == before
    assert len(shown) <= len(items) + 2


@pytest.mark.parametrize("name", [name for name in STRATEGIES if not name.startswith("summarize")])
def test_a_view_of_a_view_is_the_same(name: str) -> None:
    """Trimming or compacting a second time changes nothing."""
    for seed in range(300):
        shown = view(history(seed), STRATEGIES[name])
        assert view(shown, STRATEGIES[name]) == shown


def test_items_before_the_first_turn_are_always_there() -> None:
    system = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "No jokes."}]
    turns = [{"role": role, "content": str(n)} for n in range(9) for role in ("user", "assistant")]
    for strategy in STRATEGIES.values():
        assert view(system + turns, strategy)[:2] == system


def test_a_history_of_nothing_but_tools_is_shown_as_it_is() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "words " * 900}
    for strategy in STRATEGIES.values():
        assert view([call, output] * 3, strategy) == [call, output] * 3


def test_a_summary_stands_between_the_head_and_the_turns() -> None:
    system = {"role": "system", "content": "Be brief."}
    turns = [{"role": "user", "content": str(n)} for n in range(5)]
    strategy = Summarize(4, 2, summary_prefix="Before this:")
    assert view_of([system, *turns], strategy, summary="0, 1, 2") == [
        system,
        {"role": "user", "content": "Before this:"},
        {"role": "assistant", "content": "0, 1, 2"},
        *turns[3:],
    ]
    assert view_of([system, *turns[:4]], strategy, summary="nothing") == [system, *turns[:4]]


def test_a_call_before_the_cut_takes_its_late_output_with_it() -> None:
    user = {"role": "user", "content": "hi"}
    call = {"type": "function_call", "call_id": "late", "name": "pay", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "late", "output": "paid"}
    answer = {"role": "assistant", "content": "done"}
    assert view_of([user, call, user, output, answer], Trim(1)) == [user, answer]
    head = [call, user, output, user, answer]
    assert view_of(head, Trim(1)) == [user, answer], "a call in the head, too"
    assert view_of([call, user, answer, user, output], Trim(1)) == [call, user, output]


def test_a_program_before_the_cut_takes_its_calls_with_it() -> None:
    user = {"role": "user", "content": "hi"}
    program = {"type": "program", "id": "p", "call_id": "prog", "code": "f()", "fingerprint": "x"}
    caller = {"type": "program", "caller_id": "prog"}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "caller": caller}
    output = {"type": "function_call_output", "call_id": "c", "output": "1", "caller": caller}
    done = {"type": "program_output", "id": "o", "call_id": "prog", "result": "1", "status": "completed"}
    assert view_of([user, program, user, call, output, done], Trim(1)) == [user]
    whole = [user, program, call, output, done]
    assert view_of([user, *whole], Trim(1)) == whole


def test_a_budget_is_kept_where_that_is_possible() -> None:
    turns = [{"role": "user", "content": "x" * 4 * 46} for _ in range(30)]
    assert estimate_tokens(view_of(turns, Trim(token_budget=400))) <= 400
    assert len(view_of(turns, Trim(token_budget=400, keep_last_user_turns=3))) in range(3, 9)


def test_no_strategy_shows_everything() -> None:
    items = history(11)
    assert view_of(items, None) == items
