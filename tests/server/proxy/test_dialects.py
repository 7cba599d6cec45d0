"""Where memories go in each API, what was said in a call, and what was answered: pure functions."""

import json
from typing import Any

import pytest

from recollect.memory.prompting import PromptParts
from recollect.server.proxy.answers import read_answer
from recollect.server.proxy.chat_completions import ChatCompletions
from recollect.server.proxy.exact_json import decode_object
from recollect.server.proxy.messages import Messages
from recollect.server.proxy.responses import Responses
from recollect.server.proxy.values import Answer, Dialect, Place, Said, placed

PAGE, TAIL = "<remembered-data>page</remembered-data>", "<remembered-data>tail</remembered-data>"
ADDED = {"type": "message", "role": "developer", "content": TAIL}
SYSTEM = {"role": "system", "content": "Be kind."}
ASKED = {"role": "user", "content": "Where do I live?"}
EARLIER = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
CACHED = {"cache_control": {"type": "ephemeral"}}


def add(
    dialect: Dialect, body: dict[str, Any], page: str = PAGE, tail: str = TAIL, place: Place = "late"
) -> Any:
    content = json.dumps(body).encode()
    changed = dialect.add_memories(content, body, placed(PromptParts(page, tail), place))
    return None if changed is None else json.loads(changed)


# --- Chat Completions ---


def test_a_chat_gets_a_page_in_its_system_text_and_a_tail_after_the_newest_message() -> None:
    changed = add(ChatCompletions(), {"model": "m", "messages": [SYSTEM, *EARLIER, ASKED]})
    told = {**SYSTEM, "content": f"Be kind.\n\n{PAGE}"}
    assert changed["messages"] == [told, *EARLIER, ASKED, {"role": "system", "content": TAIL}]


def test_a_system_text_in_parts_gets_one_more_part() -> None:
    parts = [{"type": "text", "text": "Be kind."}]
    changed = add(ChatCompletions(), {"messages": [{"role": "developer", "content": parts}, ASKED]})
    assert changed["messages"][0]["content"] == [*parts, {"type": "text", "text": PAGE}]
    assert changed["messages"][-1] == {"role": "developer", "content": TAIL}


def test_without_a_system_text_there_is_one_with_the_page() -> None:
    changed = add(ChatCompletions(), {"messages": [ASKED]}, tail="")
    assert changed["messages"] == [{"role": "system", "content": PAGE}, ASKED]


def test_without_a_page_there_is_a_tail() -> None:
    changed = add(ChatCompletions(), {"messages": [SYSTEM, ASKED]}, page="")
    assert changed["messages"] == [SYSTEM, ASKED, {"role": "system", "content": TAIL}]


def test_a_server_that_allows_only_one_system_text_gets_both_there() -> None:
    changed = add(ChatCompletions(), {"messages": [SYSTEM, *EARLIER, ASKED]}, place="system")
    both = f"Be kind.\n\n{PAGE}\n\n{TAIL}"
    assert changed["messages"] == [{**SYSTEM, "content": both}, *EARLIER, ASKED]


def test_a_tool_call_keeps_its_output_behind_it() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    called = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]
    changed = add(ChatCompletions(), {"messages": [SYSTEM, *EARLIER, ASKED, *called]})
    assert changed["messages"][-4:] == [ASKED, {"role": "system", "content": TAIL}, *called]


def test_every_other_byte_of_a_call_stays() -> None:
    content = (
        b'{ "temperature": 1.00, "seed": 123456789012345678901234567890, "x": 1E+2,'
        b' "messages": [ {"role":"user", "content":"caf\\u00e9 \\/"} ],  "z":[1 , 2] }'
    )
    body = decode_object(content)
    assert body is not None
    changed = ChatCompletions().add_memories(content, body, PromptParts(PAGE, TAIL))
    assert changed is not None
    for part in (b"1.00", b"123456789012345678901234567890", b"1E+2", b'"caf\\u00e9 \\/"', b"[1 , 2]"):
        assert part in changed


# --- Responses ---


@pytest.mark.parametrize("more", [{}, {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_a_response_gets_a_page_in_its_instructions_and_a_tail_as_an_item(more: dict[str, Any]) -> None:
    changed = add(Responses(), {"input": "Where?", **more})
    asked = {"type": "message", "role": "user", "content": "Where?"}
    assert changed == {"input": [asked, ADDED], "instructions": PAGE, **more}
    changed = add(Responses(), {"input": [*EARLIER, ASKED], "instructions": "Be kind."})
    assert changed == {"input": [*EARLIER, ASKED, ADDED], "instructions": f"Be kind.\n\n{PAGE}"}


def test_outputs_of_tools_alone_get_no_tail() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    assert add(Responses(), {"input": [output]}) == {"input": [output], "instructions": PAGE}
    assert add(Responses(), {"input": [output]}, page="") is None


# --- Messages ---


def test_a_message_gets_a_page_after_the_system_text_and_a_tail_as_a_block() -> None:
    changed = add(Messages(), {"messages": [*EARLIER, ASKED]})
    asked = [{"type": "text", "text": ASKED["content"]}, {"type": "text", "text": TAIL}]
    assert changed == {"system": PAGE, "messages": [*EARLIER, {"role": "user", "content": asked}]}
    assert add(Messages(), {"messages": [ASKED], "system": "Be kind."})["system"] == f"Be kind.\n\n{PAGE}"


def test_both_go_after_what_is_cached() -> None:
    system = [{"type": "text", "text": "Long.", **CACHED}]
    last = {"role": "user", "content": [{"type": "text", "text": "Where?", **CACHED}]}
    changed = add(Messages(), {"messages": [*EARLIER, last], "system": system})
    assert changed["system"] == [*system, {"type": "text", "text": PAGE}]
    assert changed["messages"][:-1] == EARLIER
    assert changed["messages"][-1]["content"] == [*last["content"], {"type": "text", "text": TAIL}]


def test_automatic_caching_ends_where_it_would_without_memories() -> None:
    changed = add(Messages(), {"messages": [ASKED], "system": "Be kind.", **CACHED})
    assert "cache_control" not in changed
    own, added = changed["messages"][-1]["content"]
    assert own == {"type": "text", "text": "Where do I live?", **CACHED}
    assert added == {"type": "text", "text": TAIL}
    without = add(Messages(), {"messages": [ASKED], **CACHED}, tail="")
    assert without == {"messages": [ASKED], "system": PAGE, **CACHED}


def test_in_a_loop_of_tools_the_tail_stays_at_the_question() -> None:
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]}
    first = add(Messages(), {"messages": [*EARLIER, ASKED], **CACHED})
    second = add(Messages(), {"messages": [*EARLIER, ASKED, used, result], **CACHED})
    assert second["messages"][-2:] == [used, result]
    assert second["cache_control"] == CACHED["cache_control"]
    assert [block["text"] for block in second["messages"][2]["content"]] == [
        block["text"] for block in first["messages"][2]["content"]
    ]


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
