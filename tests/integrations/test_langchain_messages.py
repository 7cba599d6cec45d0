"""Messages of LangChain as items and back: exact both ways, for messages and for items of other programs."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from recollect.errors import InvalidTypeError
from recollect.integrations.langchain import items_to_messages, messages_to_items
from recollect.items.codec import encode_items

texts = st.text(max_size=20)
ids = st.one_of(st.none(), st.text(min_size=1, max_size=8))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(texts.filter(lambda name: name != "recollect_items"), values, max_size=3)
images = st.builds(
    lambda url, detail: {"type": "image_url", "image_url": {"url": url} | detail},
    texts,
    st.sampled_from([{}, {"detail": "low"}]),
)
blocks = st.one_of(
    texts,
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda text: {"type": "text", "text": text, "annotations": []}, texts),
    images,
    st.builds(lambda text: {"type": "input_text", "text": text}, texts),
    st.builds(lambda text: {"type": "output_text", "text": text}, texts),
    st.builds(lambda url: {"type": "input_image", "image_url": url}, texts),
    st.builds(lambda text: {"type": "reasoning", "id": "r", "summary": [{"text": text}]}, texts),
    st.builds(lambda data: {"type": "file", **data}, objects),
)
contents = st.one_of(texts, st.lists(blocks, max_size=4))
calls = st.lists(
    st.builds(
        lambda name, args, call_id: {"name": name, "args": args, "id": call_id, "type": "tool_call"},
        texts,
        objects,
        ids,
    ),
    max_size=3,
)
common: dict[str, Any] = {
    "content": contents,
    "id": ids,
    "name": ids,
    "additional_kwargs": objects,
    "response_metadata": objects,
}
usage = st.sampled_from([None, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}])
messages = st.one_of(
    st.builds(HumanMessage, **common),
    st.builds(SystemMessage, **common),
    st.builds(AIMessage, tool_calls=calls, usage_metadata=usage, **common),
    st.builds(
        ToolMessage,
        tool_call_id=texts,
        status=st.sampled_from(["success", "error"]),
        artifact=values,
        **common,
    ),
    st.builds(ChatMessage, role=texts, **common),
    st.builds(FunctionMessage, **{**common, "name": texts}),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(messages, max_size=4))
def test_messages_come_back_exactly(given_: list[BaseMessage]) -> None:
    items = messages_to_items(given_)
    stored = [json.loads(encoded) for encoded in encode_items(items)]  # as every session stores them
    found = items_to_messages(stored)
    assert found == given_
    assert [type(each) for each in found] == [type(each) for each in given_]
    assert [each.model_dump() for each in found] == [each.model_dump() for each in given_]


def test_an_answer_with_tool_calls_has_the_items_that_every_model_knows() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    answer = AIMessage(
        [thought, {"type": "text", "text": "I look."}],
        tool_calls=[{"name": "find", "args": {"q": "tea"}, "id": "c1"}],
    )
    items = messages_to_items([HumanMessage("hi"), answer, ToolMessage("found", tool_call_id="c1")])
    plain = [{name: value for name, value in item.items() if name != "langchain"} for item in items]
    assert plain == [
        {"type": "message", "role": "user", "content": "hi"},
        thought,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": "tea"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]


FOREIGN: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "u"}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc_1"},
    {"type": "function_call", "call_id": "b", "name": "g", "arguments": '{"x": 1}'},
    {"type": "function_call_output", "call_id": "a", "output": "1"},
    {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "2"}]},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "unheard_of", "data": {"kept": True}},
]


def test_items_of_other_programs_come_back_exactly() -> None:
    found = items_to_messages(FOREIGN)
    assert [type(each).__name__ for each in found][:5] == [
        "SystemMessage", "HumanMessage", "AIMessage", "ToolMessage", "ToolMessage",
    ]  # fmt: skip
    assert [call["id"] for call in found[2].tool_calls] == ["a", "b"]
    assert messages_to_items(found) == FOREIGN
    found[1].content = "changed"  # a message that was changed is stored as it is now
    assert items_to_messages(messages_to_items(found[1:2]))[0].content == "changed"


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(InvalidTypeError):
        messages_to_items([RemoveMessage(id="x")])
