"""The checks themselves: each says so where its promise is broken, and nothing where it is kept."""

from typing import Any

import pytest

from .items import batch, code_of, item_of, revised
from .journal import Call, Ended, Journal, Outcome, read_journal
from .model import MAIN, REFUSED, Follower, History, perform
from .rounds import Report, count
from .sharing import check_shared


def ended(number: int, kind: str, *arguments: Any, **how: Any) -> Ended:
    writer = how.get("writer", "0.0")
    call = Call(number, writer, "s", kind, arguments)
    return Ended(call, how.get("outcome", Outcome.DONE), how.get("value"))


def added(number: int, size: int, writer: str = "0.0", outcome: Outcome = Outcome.DONE) -> Ended:
    return ended(number, "add", size, writer=writer, outcome=outcome)


# --- items ---


@pytest.mark.parametrize("place", range(5))
def test_an_item_tells_its_code_and_one_that_was_changed_does_not(place: int) -> None:
    code = f"1.2.345/{place}"
    assert code_of(item_of(code)) == code
    assert code_of({**item_of(code), "extra": 1}) != code
    assert code_of({**item_of("1.2.345/9"), "content": "<1.2.345/0>!"}) != code


def test_a_revision_changes_some_items_and_removes_some() -> None:
    made = [revised(code, 7) for call in range(20) for code in batch("0.0", call, 5)]
    assert {None, True, False} == {None if code is None else "~7" in code for code in made}


# --- the journal ---


def test_a_call_without_an_end_is_unknown_and_a_torn_line_is_none(tmp_path: Any) -> None:
    journal = Journal(tmp_path / "journal")
    one, other = Call(1, "0.0", "s", "pop"), Call(2, "0.1", "t", "add", (3,))
    journal.begin(one)
    journal.begin(other)
    journal.end(one, Outcome.DONE, "0.0.9/0")
    journal.say("left", [])
    journal.close()
    with (tmp_path / "journal").open("a") as file:
        file.write('[2,"do')
    said = read_journal(tmp_path / "journal")
    assert said.calls == [Ended(one, Outcome.DONE, "0.0.9/0"), Ended(other, Outcome.UNKNOWN, "killed")]
    assert said.remarks == [("left", [])]


# --- sessions of one task ---


def test_a_reading_that_agrees_with_the_calls_before_is_followed() -> None:
    follower = Follower()
    calls = [
        added(1, 3),
        ended(2, "pop", value="0.0.1/2"),
        ended(3, "get", 1, value=["0.0.1/1"]),
        ended(4, "transform", 1, 1),
        ended(5, "read_forwards", 10, value=["0.0.1/1", "0.0.4/0"]),
        ended(6, "replace", 1),
        added(7, 2, outcome=Outcome.FAILED),
        ended(8, "get", None, value=["0.0.6/0"]),
        ended(9, "clear"),
        ended(10, "get", None, value=[]),
    ]
    assert [follower.follow(call) for call in calls] == [None] * len(calls)


@pytest.mark.parametrize(
    "wrong",
    [
        ended(9, "get", None, value=["0.0.1/0"]),  # a part of a batch
        ended(9, "get", None, value=["0.0.1/0", "0.0.1/1", "0.0.1/1"]),  # doubled
        ended(9, "get", None, value=["0.0.1/1", "0.0.1/0"]),  # in another order
        ended(9, "get", None, value=[]),  # lost
        ended(9, "pop", value="0.0.1/0"),  # not the newest
        ended(9, "pop", value=None),
        ended(9, "title", value="somebody's"),
        ended(9, "switch", "b1"),  # there is no such branch
        ended(9, "delete", MAIN, True),
        ended(9, "branch", "0.0.1/0", outcome=Outcome.REFUSED),  # it could have been made
    ],
)
def test_what_cannot_be_after_a_batch_of_two_is_found(wrong: Ended) -> None:
    follower = Follower()
    assert follower.follow(added(1, 2)) is None
    assert follower.follow(wrong) is not None


def test_an_unknown_call_has_happened_or_not_and_a_reading_tells() -> None:
    one, other = Follower(), Follower()
    for follower, read in ((one, []), (other, ["0.0.1/0", "0.0.1/1"])):
        assert follower.follow(added(1, 2, outcome=Outcome.UNKNOWN)) is None
        assert len(follower.possible) == 2
        assert follower.follow(ended(2, "get", None, value=read)) is None
        assert len(follower.possible) == 1
        assert follower.follow(ended(3, "get", None, value=["0.0.1/0"])) is not None


def test_what_is_stored_in_the_end_must_be_a_possible_history() -> None:
    follower = Follower()
    follower.follow(added(1, 1))
    follower.follow(added(2, 1, outcome=Outcome.UNKNOWN))
    assert follower.meet(History({MAIN: ("0.0.2/0",)})) is not None
    follower = Follower()
    follower.follow(added(1, 1))
    follower.follow(added(2, 1, outcome=Outcome.UNKNOWN))
    assert follower.meet(History({MAIN: ("0.0.1/0", "0.0.2/0")})) is None


def test_the_model_branches_as_sessions_do() -> None:
    history, _ = perform(History(), Call(1, "0.0", "s", "add", (5,)))
    history, made = perform(history, Call(2, "0.0", "s", "branch", ("0.0.1/4",)))
    assert (made, history.current, history.items) == ("b2", "b2", tuple(batch("0.0", 1, 4)))
    history, _ = perform(history, Call(3, "0.0", "s", "clear_branch"))
    assert history.branches == {MAIN: tuple(batch("0.0", 1, 5)), "b2": ()}
    assert perform(history, Call(4, "0.0", "s", "delete", ("b2", False)))[1] == REFUSED
    history, _ = perform(history, Call(5, "0.0", "s", "delete", ("b2", True)))
    assert (history.current, set(history.branches)) == (MAIN, {MAIN})


def test_the_model_clears_every_branch_of_a_session() -> None:
    history, _ = perform(History(), Call(1, "0.0", "s", "add", (5,)))
    history, _ = perform(history, Call(2, "0.0", "s", "branch", ("0.0.1/4",)))
    history, _ = perform(history, Call(3, "0.0", "s", "describe"))
    assert perform(history, Call(4, "0.0", "s", "clear")) == (History(), None)


# --- sessions of many ---

TWO_WRITERS = [
    added(1, 2),
    added(1, 2, writer="1.0"),
    ended(2, "pop", value="1.0.1/1"),
    added(3, 1),
    ended(4, "get", None, value=["0.0.1/0", "0.0.1/1", "1.0.1/0", "0.0.3/0"]),
]
STORED = ["0.0.1/0", "0.0.1/1", "1.0.1/0", "0.0.3/0"]


def test_a_shared_session_in_order_is_found_to_be_so() -> None:
    assert check_shared(TWO_WRITERS, STORED) == []


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (STORED[:-1], "lost"),
        ([*STORED, "0.0.3/0"], "2 times"),
        ([*STORED, "1.0.1/1"], "was popped and is there"),
        ([*STORED, "0.0.9/0"], "nobody wrote"),
        (["0.0.1/1", "0.0.1/0", "1.0.1/0", "0.0.3/0"], "of the batch"),
        (["0.0.1/0", "1.0.1/0", "0.0.1/1", "0.0.3/0"], "of the batch"),
        (["0.0.3/0", "0.0.1/0", "0.0.1/1", "1.0.1/0"], "wrote later"),
        (["0.0.1/0", "0.0.1/1", "0.0.3/0"], "lost"),
    ],
)
def test_what_cannot_be_in_a_shared_session_is_found(stored: list[str], said: str) -> None:
    assert any(said in wrong for wrong in check_shared(TWO_WRITERS, stored))


def test_an_item_popped_twice_and_one_never_written_are_found() -> None:
    twice = ended(7, "pop", writer="1.1", value="1.0.1/1")
    assert any("popped twice" in wrong for wrong in check_shared([*TWO_WRITERS, twice], STORED))
    never = ended(7, "pop", writer="1.1", value="1.0.8/0")
    assert any("nobody wrote it" in wrong for wrong in check_shared([*TWO_WRITERS, never], STORED))


def test_an_unknown_batch_is_whole_or_absent_and_an_unknown_pop_may_explain_one_loss() -> None:
    unknown = added(8, 3, outcome=Outcome.UNKNOWN)
    whole = [*STORED, *batch("0.0", 8, 3)]
    assert check_shared([*TWO_WRITERS, unknown], STORED) == []
    assert check_shared([*TWO_WRITERS, unknown], whole) == []
    assert check_shared([*TWO_WRITERS, unknown], whole[:-1]) != []
    popping = ended(9, "pop", outcome=Outcome.UNKNOWN)
    assert check_shared([*TWO_WRITERS, unknown, popping], whole[:-1]) == []
    assert check_shared([*TWO_WRITERS, unknown, popping], whole[:-2]) != []


def test_a_call_that_is_refused_is_found_on_a_shared_session() -> None:
    refused = ended(6, "pop", outcome=Outcome.REFUSED)
    assert any("was refused" in wrong for wrong in check_shared([*TWO_WRITERS, refused], STORED))


def test_a_pop_that_finds_nothing_where_something_must_be_is_found() -> None:
    nothing, popping = ended(6, "pop"), ended(9, "pop", outcome=Outcome.UNKNOWN)
    assert any("its own" in wrong for wrong in check_shared([*TWO_WRITERS, nothing], STORED))
    assert check_shared([nothing, *TWO_WRITERS], STORED) == []  # before its writer wrote anything
    assert check_shared([added(1, 1), nothing, popping], []) == []  # an unknown pop has taken it


def test_a_writer_that_does_not_read_its_own_is_found() -> None:
    blind = ended(6, "get", None, value=STORED[:3])
    assert any("its own" in wrong for wrong in check_shared([*TWO_WRITERS, blind], STORED))


# --- what is counted ---


def test_calls_that_failed_and_readings_that_nobody_saw_are_not_counted_as_checked() -> None:
    report = Report()
    count(
        [
            added(1, 1),
            added(2, 1, outcome=Outcome.FAILED),
            ended(3, "add", 1, outcome=Outcome.UNKNOWN, value="cancelled"),
            ended(4, "get", None, outcome=Outcome.UNKNOWN, value="cancelled"),
            ended(5, "get", None, value=[]),
        ],
        report,
    )
    assert report.operations == {"add": 2, "get": 1}
    assert report.faults == {"calls cancelled": 2}
