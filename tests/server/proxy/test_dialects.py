"""Where memories go in each API, what was said in a call, and what was answered: pure functions."""

import json
from typing import Any

import pytest

from recollect.server.proxy.answers import read_answer
from recollect.server.proxy.chat_completions import ChatCompletions
from recollect.server.proxy.exact_json import decode_object
from recollect.server.proxy.messages import Messages
from recollect.server.proxy.responses import Responses
from recollect.server.proxy.values import Answer, Dialect, Place, Said

BLOCK = "<remembered-data>…</remembered-data>"
SYSTEM = {"role": "system", "content": "Be kind."}
ASKED = {"role": "user", "content": "Where do I live?"}
EARLIER = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
CACHED = {"cache_control": {"type": "ephemeral"}}


def add(dialect: Dialect, body: dict[str, Any], place: Place = "late") -> Any:
    content = json.dumps(body).encode()
    changed = dialect.add_memories(content, body, BLOCK, place)
    return None if changed is None else json.loads(changed)


# --- Chat Completions ---


def test_a_first_chat_message_gets_memories_after_the_system_text() -> None:
    changed = add(ChatCompletions(), {"model": "m", "messages": [SYSTEM, ASKED]})
    assert changed["messages"] == [{**SYSTEM, "content": f"Be kind.\n\n{BLOCK}"}, ASKED]


def test_a_system_text_in_parts_gets_one_more_part() -> None:
    parts = [{"type": "text", "text": "Be kind."}]
    changed = add(ChatCompletions(), {"messages": [{"role": "developer", "content": parts}, ASKED]})
    assert changed["messages"][0]["content"] == [*parts, {"type": "text", "text": BLOCK}]


def test_without_a_system_text_there_is_one_with_memories() -> None:
    changed = add(ChatCompletions(), {"messages": [ASKED]})
    assert changed["messages"] == [{"role": "system", "content": BLOCK}, ASKED]


def test_a_chat_keeps_its_prefix_which_the_provider_caches() -> None:
    before = [SYSTEM, *EARLIER]
    changed = add(ChatCompletions(), {"messages": [*before, ASKED]})
    assert changed["messages"] == [*before, {"role": "system", "content": BLOCK}, ASKED]


def test_a_server_that_allows_only_one_system_text_gets_memories_there() -> None:
    changed = add(ChatCompletions(), {"messages": [SYSTEM, *EARLIER, ASKED]}, "system")
    assert changed["messages"] == [{**SYSTEM, "content": f"Be kind.\n\n{BLOCK}"}, *EARLIER, ASKED]


def test_a_tool_call_keeps_its_output_behind_it() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    called = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]
    changed = add(ChatCompletions(), {"messages": [SYSTEM, *EARLIER, ASKED, *called]})
    assert changed["messages"][-3:] == [ASKED, *called]
    assert changed["messages"][-4]["content"] == BLOCK


def test_every_other_byte_of_a_call_stays() -> None:
    content = (
        b'{ "temperature": 1.00, "seed": 123456789012345678901234567890, "x": 1E+2,'
        b' "messages": [ {"role":"user", "content":"caf\\u00e9 \\/"} ],  "z":[1 , 2] }'
    )
    body = decode_object(content)
    assert body is not None
    changed = ChatCompletions().add_memories(content, body, BLOCK, "late")
    assert changed is not None
    for part in (b"1.00", b"123456789012345678901234567890", b"1E+2", b'"caf\\u00e9 \\/"', b"[1 , 2]"):
        assert part in changed


# --- Responses ---


def test_a_response_gets_memories_after_its_instructions() -> None:
    assert add(Responses(), {"input": "Where?"}) == {"input": "Where?", "instructions": BLOCK}
    changed = add(Responses(), {"input": [ASKED], "instructions": "Be kind."})
    assert changed == {"input": [ASKED], "instructions": f"Be kind.\n\n{BLOCK}"}


def test_a_response_with_a_history_keeps_its_prefix() -> None:
    changed = add(Responses(), {"input": [*EARLIER, ASKED], "instructions": "Be kind."})
    added = {"type": "message", "role": "developer", "content": BLOCK}
    assert changed == {"input": [*EARLIER, added, ASKED], "instructions": "Be kind."}


def test_a_conversation_at_the_provider_stores_no_memories() -> None:
    changed = add(Responses(), {"input": "Where?", "previous_response_id": "resp_1"})
    assert (changed["input"], changed["instructions"]) == ("Where?", BLOCK)


# --- Messages ---


def test_a_message_gets_memories_after_the_system_text() -> None:
    assert add(Messages(), {"messages": [ASKED]})["system"] == BLOCK
    assert add(Messages(), {"messages": [ASKED], "system": "Be kind."})["system"] == f"Be kind.\n\n{BLOCK}"


def test_memories_go_after_a_cached_system_text() -> None:
    system = [{"type": "text", "text": "Long.", **CACHED}]
    changed = add(Messages(), {"messages": [*EARLIER, ASKED], "system": system})
    assert changed["system"] == [*system, {"type": "text", "text": BLOCK}]


def test_memories_go_after_a_cached_message() -> None:
    last = {"role": "user", "content": [{"type": "text", "text": "Where?", **CACHED}]}
    body = {"messages": [*EARLIER, last], "system": [{"type": "text", "text": "Long.", **CACHED}]}
    changed = add(Messages(), body)
    assert changed["system"] == body["system"]
    assert changed["messages"][:-1] == EARLIER
    assert changed["messages"][-1]["content"] == [*last["content"], {"type": "text", "text": BLOCK}]


def test_an_earlier_cached_message_is_a_prefix_too() -> None:
    first = {"role": "user", "content": [{"type": "text", "text": "Hi", **CACHED}]}
    changed = add(Messages(), {"messages": [first, EARLIER[1], ASKED]})
    assert "system" not in changed
    own, added = changed["messages"][-1]["content"]
    assert (own["text"], added["text"]) == ("Where do I live?", BLOCK)


def test_automatic_caching_ends_where_it_would_without_memories() -> None:
    changed = add(Messages(), {"messages": [ASKED], "system": "Be kind.", **CACHED})
    assert "cache_control" not in changed
    own, added = changed["messages"][-1]["content"]
    assert own == {"type": "text", "text": "Where do I live?", **CACHED}
    assert added == {"type": "text", "text": BLOCK}


def test_a_started_answer_that_is_cached_leaves_no_place() -> None:
    begun = {"role": "assistant", "content": [{"type": "text", "text": "You", **CACHED}]}
    assert add(Messages(), {"messages": [ASKED, begun]}) is None


# --- what was said ---


def test_what_was_said_is_the_text_of_user_and_assistant() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts = [{"type": "text", "text": "Look:"}, image, {"type": "text", "text": "my dog"}]
    messages = [
        SYSTEM,
        {"role": "user", "content": parts, "name": "ada"},
        *EARLIER[1:],
        {"role": "tool", "content": "1"},
    ]
    assert ChatCompletions().said_in({"messages": messages}) == [
        Said("user", "Look:\nmy dog", "ada"),
        Said("assistant", "Hello!"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None},
        {"messages": "hi"},
        {"messages": [1]},
        {"messages": [{"role": "user", "content": 7}]},
    ],
)
@pytest.mark.parametrize("dialect", [ChatCompletions(), Responses(), Messages()])
def test_a_call_of_any_shape_can_be_read(dialect: Dialect, body: dict[str, Any]) -> None:
    assert list(dialect.said_in(body)) == []
    assert list(dialect.said_in({"input": body.get("messages")})) in ([], [Said("user", "hi")])
    assert dialect.user_of(body) is None


def test_each_api_names_its_user() -> None:
    for openai in (ChatCompletions(), Responses()):
        assert openai.user_of({"user": "ada", "safety_identifier": "bob"}) == "ada"
        assert openai.user_of({"safety_identifier": "bob"}) == "bob"
    assert Messages().user_of({"metadata": {"user_id": "ada"}}) == "ada"
    assert Messages().user_of({"metadata": "ada"}) is None


# --- answers ---


def events(*data: object) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in data)


def test_a_streamed_chat_answer_is_complete_with_its_finish_reason() -> None:
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        for text in ("In ", "Lisbon")
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    stream = events(*pieces)
    assert read_answer(ChatCompletions(), "", stream) is None
    assert read_answer(ChatCompletions(), "", stream + events(end) + b"data: [DONE]\n\n") == Answer(
        "In Lisbon"
    )
    failed = events(*pieces, {"error": {"message": "x"}}, end)
    assert read_answer(ChatCompletions(), "", failed) is None


def test_of_several_choices_none_is_the_answer() -> None:
    choice = {"message": {"role": "assistant", "content": "Hi"}}
    whole = json.dumps({"choices": [choice, choice]}).encode()
    assert read_answer(ChatCompletions(), "", whole) == Answer(None)
    ends = [{"choices": [{"index": n, "delta": {"content": "Hi"}, "finish_reason": "stop"}]} for n in (0, 1)]
    assert read_answer(ChatCompletions(), "", events(*ends)) == Answer(None)


def test_a_message_without_its_end_is_no_answer() -> None:
    delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Lisbon"}}
    thought = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "…"},
    }
    assert read_answer(Messages(), "", events(thought, delta)) is None
    assert read_answer(Messages(), "", events(thought, delta, {"type": "message_stop"})) == Answer("Lisbon")


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b'{"a":', b'{"a":1}', b"data: {\n\n", b"\xff\x00"]
)
@pytest.mark.parametrize("dialect", [ChatCompletions(), Responses(), Messages()])
@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
def test_what_is_no_answer_is_none(dialect: Dialect, content: bytes, encoding: str) -> None:
    assert read_answer(dialect, encoding, content) is None
