"""What an event tells of its item, for each kind of item."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import CALL_KINDS, PICTURE, call_and_output, histories, odd_items, picture, quick
from recollect import fingerprint, text_of
from recollect.sessions.events import ConversationEvent, event_of
from recollect.sessions.events.event import Origin, events_of

Item = dict[str, Any]

ASKED = {
    "function_call": '{"city": "Paris"}',
    "custom_tool_call": "Paris",
    "computer_call": '{"type": "type", "text": "Paris"}',
    "shell_call": '{"commands": ["Paris"]}',
    "local_shell_call": '{"type": "exec", "command": ["echo", "Paris"], "env": {}}',
    "apply_patch_call": '{"type": "update_file", "path": "a.py", "diff": "Paris"}',
    "tool_search_call": '{"query": "Paris"}',
    "program": "Paris",
    "mcp_approval_request": "Paris",
}
ANSWERED = {
    "computer_call": None,  # a picture, which is attached
    "shell_call": '[{"stdout": "Paris", "stderr": "", "outcome": {"type": "exit"}}]',
    "tool_search_call": '[{"type": "function", "name": "t", "description": "Paris"}]',
    "mcp_approval_request": "true",
}
NAMES = {
    "function_call": "get_weather",
    "custom_tool_call": "sql",
    "tool_search_call": "tool_search",
    "mcp_approval_request": "files.delete",
    "program": None,
}


def event(item: Item, **options: Any) -> ConversationEvent:
    return event_of(item, conversation_id="c", **options)


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_calls_and_outputs(kind: str) -> None:
    call, output = call_and_output(kind, "call_7", "Paris")
    asked, answered = events_of("c", [call, output], [1, 2], Origin(), {})
    assert (asked.item_type, answered.item_type) == (call["type"], output["type"])
    assert (asked.tool_call_id, answered.tool_call_id) == ("call_7", "call_7")
    assert asked.tool_name == answered.tool_name == NAMES.get(kind, kind)
    assert (asked.call_arguments, answered.call_arguments) == (ASKED[kind], None)
    assert (asked.call_output, answered.call_output) == (None, ANSWERED.get(kind, "Paris"))
    assert asked.text is answered.text is None
    assert asked.reasoning_text is answered.reasoning_text is None


def test_pictures_sounds_and_files_are_attached_whole() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    file = {"type": "input_file", "file_id": "file_1", "filename": "a.pdf"}
    parts = [{"type": "input_text", "text": "look"}, picture(), sound, file]
    said = event({"role": "user", "content": parts})
    assert (said.role, said.text, said.attachments) == ("user", "look", (picture(), sound, file))
    output = {"type": "function_call_output", "call_id": "c", "output": [parts[0], picture()]}
    assert (event(output).call_output, event(output).attachments) == ("look", (picture(),))
    screen = {"type": "computer_screenshot", "image_url": PICTURE}
    seen = event({"type": "computer_call_output", "call_id": "c", "output": screen})
    assert (seen.call_output, seen.attachments) == (None, (screen,))
    drawn = event({"type": "image_generation_call", "id": "ig", "result": "iVBOR"})
    assert (drawn.call_output, len(drawn.attachments)) == (None, 1)


def test_tools_that_the_provider_runs() -> None:
    searched = event({"type": "web_search_call", "id": "ws", "action": {"query": "tea"}})
    assert (searched.tool_name, searched.tool_call_id) == ("web_search_call", "ws")
    assert searched.call_arguments == '{"query": "tea"}'
    asked = event({"type": "mcp_call", "id": "m", "name": "ask", "arguments": "{}", "output": "42"})
    assert (asked.item_name, asked.call_arguments, asked.call_output) == ("ask", "{}", "42")
    found = event(
        {"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"text": "t", "score": 1}]}
    )
    assert json.loads(found.call_output or "") == [{"text": "t", "score": 1}]


def test_thoughts_and_the_rest() -> None:
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
    assert (event(thought).reasoning_text, event(thought).text) == ("hm", None)
    compacted = event({"type": "compaction", "id": "cmp", "encrypted_content": "gAAAAA"})
    assert (compacted.item_type, compacted.text, compacted.call_output) == ("compaction", None, None)
    assert "gAAAAA" not in str(vars(compacted))


def test_the_response_and_the_model_belong_to_what_the_model_made() -> None:
    origin: dict[str, Any] = {"response_id": "resp_1", "model": "m", "agent": "Desk"}
    answer = event({"role": "assistant", "content": "hi"}, **origin)
    assert (answer.response_id, answer.model, answer.agent) == ("resp_1", "m", "Desk")
    for made_by_others in ({"role": "user", "content": "hi"}, call_and_output("function_call", "c")[1]):
        other = event(made_by_others, **origin)
        assert (other.response_id, other.model, other.agent) == (None, None, "Desk")


def test_the_times() -> None:
    then = datetime(2020, 1, 1, tzinfo=UTC)
    told = event({"role": "user", "content": "hi"}, created_at=then)
    assert told.created_at == then < told.ingested_at
    untold = event({"role": "user", "content": "hi"})
    assert untold.created_at == untold.ingested_at


def test_an_event_does_not_show_its_contents_where_it_is_printed() -> None:
    shown = repr(event({"role": "user", "content": [{"type": "input_text", "text": "secret"}, picture()]}))
    assert "secret" not in shown
    assert PICTURE not in shown


@quick
@given(histories())
def test_every_word_of_a_history_is_in_its_events(items: list[Item]) -> None:
    events = events_of("c", items, [None] * len(items), Origin(), {})
    assert [event.fingerprint for event in events] == [fingerprint(item) for item in items]
    for item, event in zip(items, events, strict=True):
        if item.get("role"):
            assert (event.text or "") == text_of(item)
        told = (event.text, event.reasoning_text, event.call_arguments, event.call_output)
        everything = " ".join(text or "" for text in told) + json.dumps(event.attachments, ensure_ascii=False)
        plain = [word for word in text_of(item).split() if word.isalpha()]
        assert all(word in everything for word in plain)


@quick
@given(st.lists(odd_items(), max_size=5))
def test_whatever_an_item_holds_it_is_an_event(items: list[Item]) -> None:
    assert len(events_of("c", items, [None] * len(items), Origin(), {})) == len(items)
