"""A provider that fails: the turn says so, is recorded, leaves the session sound; the next one works."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from recollect.errors import StorageError
from recollect.providers.errors import DETAILS, ChatFailedError, describe_failure, failure_code
from recollect.providers.openai.registry import AgentDescriptor
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    ApiError,
    CloseAfter,
    CloseBefore,
    Filtered,
    Garble,
    Overloaded,
    ProviderServer,
    Refuse,
    Reply,
    Stall,
    ToolCall,
    TooLong,
    Truncate,
    Usage,
    WrongKey,
)

from .chats import COMPLETIONS, RESPONSES, Chat, Place, kinds, open_chat, options_for, short

TOOLS = "tests.providers_openai.tools_of_agents"
DESK = AgentDescriptor("desk", "Be brief.", tools=(f"{TOOLS}:add", f"{TOOLS}:explode"))
SECRET = "xylophone"
ANSWER = "a long answer about " + "xylophones " * 40

FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "an error of the server": (lambda: Refuse(500, f"failed on {SECRET}"), "model_unavailable"),
    "too many requests": (lambda: Refuse(429, f"slow down, {SECRET}", retry_after=0), "model_unavailable"),
    "an overload": (Overloaded, "model_unavailable"),
    "a wrong key": (WrongKey, "model_not_configured"),
    "an unknown model": (lambda: Refuse(404, f"no model for {SECRET}"), "model_not_configured"),
    "too long": (TooLong, "model_refused"),
    "filtered": (Filtered, "model_refused"),
    "closed before": (CloseBefore, "model_unavailable"),
    "closed after": (CloseAfter, "model_unavailable"),
    "cut at once": (lambda: Truncate(1), "model_unavailable"),
    "cut in the middle of the stream": (lambda: Truncate(2500), "model_unavailable"),
    "garbage": (lambda: Garble(b"<html>xylophone</html>", "text/event-stream"), "model_failed"),
}


async def check_failed(chat: Chat, code: str, text: str = f"Tell me of {SECRET}s.", **more: Any) -> None:
    """A turn that fails, and all that is left of it."""
    before = len(await chat.turns())
    events = await chat.stream(text, **more)
    assert (events[-1].kind, events[-1].data["code"]) == ("turn.failed", code)
    assert SECRET not in events[-1].data["detail"]
    turn = (await chat.turns())[before]
    assert (turn["status"], turn["error_code"]) == ("failed", code)
    assert turn["finished_at"] is not None
    assert turn["assistant_message_id"] is None
    assert (await chat.said())[-1] == ("user", text)
    assert short(await chat.items())[-1] == "U"


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
@pytest.mark.parametrize("fault", FAULTS)
@in_event_loop
async def test_a_fault_fails_the_turn_and_the_next_one_works(
    file_place: Place, server: ProviderServer, fault: str, api: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, code = FAULTS[fault]
    caplog.set_level(logging.INFO)
    script = server.responses if api == "responses" else server.chat
    script.reply("Hello.")
    async with open_chat(file_place, server, options=options_for(server, api=api)) as chat:
        await chat.begin()
        await chat.say("Hi.")
        script.reply_always(ANSWER)
        server.fail_next(RESPONSES if api == "responses" else COMPLETIONS, make())
        await check_failed(chat, code)
        assert (await chat.say("Again.")).text == ANSWER
        assert short(await chat.items()) == "UAUUA"
        assert [turn["status"] for turn in await chat.turns()] == ["done", "failed", "done"]
    assert SECRET not in caplog.text
    assert "failed: " in caplog.text


@in_event_loop
async def test_a_stream_that_fails_after_words_and_a_tool_leaves_no_half(
    place: Place, server: ProviderServer
) -> None:
    call = ToolCall("add", {"a": 1, "b": 2}, "call_1")
    broken = Reply("It is certainly thr", error=ApiError(500, f"failed on {SECRET}"), usage=Usage(50, 5))
    server.responses.reply(Reply(tool_calls=[call], usage=Usage(100, 10)), broken, "It is 3.")
    async with open_chat(place, server, [DESK]) as chat:
        await chat.begin()
        events = await chat.stream(f"1+2 {SECRET}s?", agent="desk")
        told = ["turn.started", "tool.called", "tool.output", "text.delta", "turn.failed"]
        assert kinds(events) == told
        assert events[-1].data["code"] in ("model_failed", "model_unavailable")
        assert short(await chat.items()) == "U", "the call and its output went with the answer"
        kept = await chat.provider.inspector.events_of(chat.conversation)
        assert [event.item_type for event in kept] == ["message", "function_call", "function_call_output"]
        (turn,) = await chat.turns()
        assert (turn["status"], turn["requests"], turn["total_tokens"]) == ("failed", 1, 110)
        assert chat.meter.tokens == {"acme": 110}
        assert (await chat.say("Once more.", agent="desk")).text == "It is 3."
        assert short(await chat.items()) == "UUA"
        assert len(await chat.provider.inspector.events_of(chat.conversation)) == 5


@in_event_loop
async def test_a_tool_that_ends_the_run_fails_the_turn(
    file_place: Place, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.responses.reply(ToolCall("explode", {"secret": SECRET}), "Sorry.")
    async with open_chat(file_place, server, [DESK]) as chat:
        await chat.begin()
        await check_failed(chat, "model_failed", agent="desk")
        assert (await chat.say("And now?", agent="desk")).text == "Sorry."
    assert SECRET not in caplog.text


@in_event_loop
async def test_an_agent_that_does_not_come_to_an_end_is_stopped(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always(ToolCall("add", {"a": 1, "b": 2}))
    brief = AgentDescriptor("desk", "Be brief.", tools=(f"{TOOLS}:add",), max_turns=3)
    async with open_chat(file_place, server, [brief]) as chat:
        await chat.begin()
        await check_failed(chat, "max_turns", agent="desk")
    assert len(server.requests(RESPONSES)) == 3


@in_event_loop
async def test_a_stream_that_stalls_fails_when_the_patience_is_over(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply(ANSWER, "Here I am.")
    go_on = threading.Event()
    server.fail_next(RESPONSES, Stall(go_on, after=2000))
    options = options_for(server)
    impatient = options_for(server, endpoint=_impatient(options.endpoint))
    async with open_chat(file_place, server, options=impatient) as chat:
        await chat.begin()
        await check_failed(chat, "model_unavailable")
        go_on.set()
        assert (await chat.say("Hello?")).text == "Here I am."


def _impatient(endpoint: Any) -> Any:
    from dataclasses import replace

    return replace(endpoint, timeout=5)


@in_event_loop
async def test_a_model_without_a_key_fails_and_does_not_blame_the_message(
    file_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    async with open_chat(file_place, options=options_for(None, model="gpt-test")) as chat:
        await chat.begin()
        await check_failed(chat, "model_not_configured")
        assert "message" not in DETAILS["model_not_configured"]
        assert chat.provider.lacks_model_key


def test_the_words_of_an_error_never_reach_whoever_asked() -> None:
    for error in (RuntimeError(SECRET), ConnectionError(SECRET), StorageError(SECRET)):
        code, detail = describe_failure(ChatFailedError(failure_code(error)))
        assert code in ("model_failed", "model_unavailable", "storage_failed")
        assert SECRET not in detail
        assert SECRET not in describe_failure(error)[1]
