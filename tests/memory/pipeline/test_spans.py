"""The message ranges of runs."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.conversation import Message
from recollect.memory.pipeline.scheduler import spans_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def messages(lengths: list[int], first: int = 0) -> list[Message]:
    return [Message("user", "x" * n, f"m{place}", place, NOW) for place, n in enumerate(lengths, first)]


def test_a_short_conversation_is_one_run() -> None:
    assert spans_of(messages([10] * 100)) == [(0, 99)]


def test_nothing_said_is_no_run() -> None:
    assert spans_of([]) == []


def test_a_hundred_and_one_messages_are_two_runs() -> None:
    assert spans_of(messages([1] * 101)) == [(0, 99), (100, 100)]


def test_messages_that_are_long_together_are_divided() -> None:
    assert spans_of(messages([30_000, 10_000, 1])) == [(0, 1), (2, 2)]


def test_a_message_that_is_too_long_by_itself_is_a_run_by_itself() -> None:
    assert spans_of(messages([5, 5_000_000, 5])) == [(0, 0), (1, 1), (2, 2)]


def test_messages_that_are_appended_keep_their_places() -> None:
    assert spans_of(messages([1, 1], first=7)) == [(7, 8)]


@given(st.lists(st.integers(1, 45_000), max_size=250), st.integers(0, 50))
def test_every_message_is_in_one_run_and_all_are_in_order(lengths: list[int], first: int) -> None:
    said = messages(lengths, first)
    taken = [place for start, end in spans_of(said) for place in range(start, end + 1)]
    assert taken == [message.message_index for message in said]
    for start, end in spans_of(said):
        together = sum(lengths[place - first] for place in range(start, end + 1))
        assert end - start < 100
        assert together <= 40_000 or start == end
