"""Conversations and memories as values: accepted input, and their representation."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.memory.conversation import Conversation
from recollect.memory.memory import Memory

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
USER = {"role": "user", "content": "Hello, I am Ada"}
ASSISTANT = {"role": "assistant", "content": "Hello Ada"}


def conversation(*messages: Any, **more: Any) -> Conversation:
    return Conversation("agent", "user", messages, **more)


def test_what_is_missing_is_made() -> None:
    made = conversation(USER, ASSISTANT)
    ids = [made.conversation_id, made.session_id, *(message.message_id for message in made.messages)]
    assert all(UUID.fullmatch(each) for each in ids)
    assert len(set(ids)) == 4
    assert [message.message_index for message in made.messages] == [0, 1]
    assert {message.created_at for message in made.messages} == {made.created_at}
    assert made.created_at.utcoffset() == timedelta(0)
    assert (made.memory_id, made.pipeline_result, made.turn_count) == (None, None, 2)


def test_a_conversation_is_told_in_the_shape_of_the_service() -> None:
    told = conversation(
        {**USER, "message_id": "m1", "created_at": "2024-05-07T10:00:00+02:00"},
        conversation_id="c",
        session_id="s",
        memory_id="m",
        created_at="2024-05-07T09:30:00",
    ).to_dict()
    said = {
        "message_id": "m1",
        "role": "user",
        "name": None,
        "content": "Hello, I am Ada",
        "attachments": [],
        "message_index": 0,
        "created_at": "2024-05-07T08:00:00Z",
    }
    assert told == {
        "conversation_id": "c",
        "agent_id": "agent",
        "user_id": "user",
        "session_id": "s",
        "created_at": "2024-05-07T09:30:00Z",
        "turn_count": 1,
        "memory_id": "m",
        "metadata": {},
        "tags": [],
        "messages": [said],
        "conversation_data": {"messages": [said]},
        "pipeline_result": None,
        "summary": "Conversation with 1 turns: Hello, I am Ada...",
    }


@pytest.mark.parametrize(
    ("messages", "summary"),
    [
        ([], "Empty conversation"),
        ([ASSISTANT], "Conversation with 1 turns: No user message..."),
        ([ASSISTANT, USER, USER], "Conversation with 3 turns: Hello, I am Ada..."),
        ([{"role": "user", "content": "x" * 150}], f"Conversation with 1 turns: {'x' * 100}..."),
        ([{"role": "system", "content": "You are kind"}], "Conversation with 1 turns: No user message..."),
    ],
)
def test_the_summary_says_what_it_starts_with(messages: list[Any], summary: str) -> None:
    assert conversation(*messages).summary == summary


def test_what_was_told_is_read_again() -> None:
    told = conversation(USER, ASSISTANT, pipeline_result={"a": 1}).to_dict()
    assert Conversation.from_dict(told).to_dict() == told


@pytest.mark.parametrize(
    "data",
    [{"conversation_data": {"messages": [USER]}}, {"conversation_data": [USER]}, {"messages": [USER]}],
)
def test_messages_are_read_in_each_of_their_shapes(data: dict[str, Any]) -> None:
    read = Conversation.from_dict({"agent_id": "a", "user_id": "u", **data})
    assert [message.content for message in read.messages] == ["Hello, I am Ada"]


def test_a_memory_is_told_in_the_shape_of_the_service() -> None:
    memory = Memory(
        agent_id="a",
        user_id="u",
        data={"profile_content": ["p"], "event": ["e1", "e2"]},
        memory_id="m",
        created_at=datetime(2024, 5, 7, 12, tzinfo=timezone(timedelta(hours=2))),
        updated_at=datetime(2024, 5, 8, tzinfo=UTC),
        version=3,
    )
    assert memory.to_dict() == {
        "memory_id": "m",
        "agent_id": "a",
        "user_id": "u",
        "created_at": "2024-05-07T10:00:00Z",
        "updated_at": "2024-05-08T00:00:00Z",
        "version": 3,
        "profile_content": ["p"],
        "event_content": ["e1", "e2"],
        "mind_content": [],
    }
    assert Memory.from_dict(memory.to_dict()).to_dict() == memory.to_dict()


def test_short_keys_and_lines_are_read() -> None:
    told = {"agent_id": "a", "user_id": "u", "profile": ["p"], "event": "e1\n\ne2", "mind": None}
    memory = Memory.from_dict(told)
    assert (memory.profile_content, memory.event_content, memory.mind_content) == (["p"], ["e1", "e2"], [])


def test_contents_are_not_in_the_representation() -> None:
    told = repr(conversation(USER)) + repr(Memory("a", "u", {"profile": ["Ada"]}))
    assert "Ada" not in told


BAD_MESSAGES = [
    ("hello", TypeError, "messages must be a list, not str"),
    ({"role": "user"}, TypeError, "messages must be a list, not dict"),
    (7, TypeError, "messages must be a list, not int"),
    ([7], TypeError, "message 0 must be an object, not int"),
    ([USER, None], TypeError, "message 1 must be an object, not NoneType"),
    (
        [{"content": "x"}],
        ValueError,
        "message 0 must have a role: one of user, assistant, system, tool",
    ),
    ([{"role": "function", "content": "x"}], ValueError, "message 0 must have a role"),
    ([{"role": ["user"], "content": "x"}], ValueError, "message 0 must have a role"),
    ([{"role": "user"}], ValueError, "message 0 must have content"),
    (
        [{"role": "user", "content": 7}],
        TypeError,
        "content of message 0 must be text or a list of parts, not int",
    ),
    ([{"role": "user", "content": " \n"}], ValueError, "content of message 0 must not be empty"),
    ([{**USER, "mood": "good"}], ValueError, "message 0 has unknown fields: mood"),
    ([{**USER, "name": 7}], TypeError, "name of message 0 must be text, not int"),
    ([{**USER, "name": " "}], ValueError, "name of message 0 must be one line of printable text"),
    ([{**USER, "name": "a\nb"}], ValueError, "name of message 0 must be one line of printable text"),
    ([{**USER, "name": "x" * 256}], ValueError, "name of message 0 must not be longer than 255 characters"),
    ([{**USER, "message_id": ""}], ValueError, "message_id of message 0 must not be empty"),
    ([{**USER, "message_id": "x" * 256}], ValueError, "must not be longer than 255 characters"),
    ([{**USER, "message_id": "a"}] * 2, ValueError, "two messages have the same message_id"),
    ([{**USER, "created_at": "yesterday"}], ValueError, "created_at of message 0 must be a time in ISO 8601"),
    ([{**USER, "created_at": 7}], TypeError, "created_at of message 0 must be a datetime, not int"),
]


@pytest.mark.parametrize(("messages", "kind", "told"), BAD_MESSAGES)
def test_messages_that_are_none_are_refused(messages: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=re.escape(told)):
        Conversation("agent", "user", messages)


BAD_FIELDS = [
    ({"agent_id": ""}, ValueError, "agent_id must not be empty"),
    ({"user_id": ""}, ValueError, "user_id must not be empty"),
    ({"user_id": 7}, TypeError, "user_id"),
    ({"user_id": "\ud800"}, ValueError, "user_id"),
    ({"agent_id": "nul \0"}, ValueError, "agent_id"),
    ({"session_id": ""}, ValueError, "session_id must not be empty"),
    ({"conversation_id": "x" * 256}, ValueError, "conversation_id must not be longer"),
    ({"memory_id": ""}, ValueError, "memory_id must not be empty"),
    ({"created_at": "2024-13-01"}, ValueError, "created_at must be a time in ISO 8601"),
    ({"created_at": datetime(2024, 1, 1)}, ValueError, "created_at must have a time zone"),  # noqa: DTZ001
]


@pytest.mark.parametrize(("fields", "kind", "told"), BAD_FIELDS)
def test_fields_without_sense_are_refused(fields: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        Conversation(**{"agent_id": "a", "user_id": "u", "messages": [USER], **fields})


@pytest.mark.parametrize("name", ["agent_id", "user_id"])
def test_an_owner_that_is_missing_is_a_value_error(name: str) -> None:
    told = {"agent_id": "a", "user_id": "u", "messages": [USER]}
    del told[name]
    with pytest.raises(ValueError, match=name):
        Conversation.from_dict(told)
    with pytest.raises(ValueError, match=name):
        Memory.from_dict({key: value for key, value in told.items() if key != "messages"})


@pytest.mark.parametrize(
    ("fields", "kind", "told"),
    [
        ({"data": []}, TypeError, "data must be an object, not list"),
        ({"data": {"likes": []}}, ValueError, "data has unknown fields: likes"),
        ({"data": {"profile": 7}}, TypeError, "profile_content must be a list of texts, not int"),
        ({"data": {"mind": [7]}}, TypeError, "mind_content must hold texts, not int"),
        ({"version": 0}, ValueError, "version must be a whole number of at least 1"),
        ({"version": True}, ValueError, "version must be a whole number of at least 1"),
    ],
)
def test_a_memory_without_sense_is_refused(fields: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        Memory("a", "u", **fields)
