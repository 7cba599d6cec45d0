"""For any fault of the provider, an extractor gives an answer or one clear error, and still works."""

import asyncio
import json
import threading
from typing import Any

import pytest

from recollect.errors import (
    ExtractionError,
    ModelRefusedError,
    ModelUnavailableError,
    UnusableAnswerError,
)
from recollect.items import estimate_text_tokens
from recollect.memory.extraction import AnthropicExtractor, OpenAIExtractor
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    ApiError,
    CloseAfter,
    CloseBefore,
    Fault,
    Filtered,
    Garble,
    Hold,
    Overloaded,
    ProviderServer,
    Refuse,
    Reply,
    Stall,
    ToolCall,
    TooLong,
    Truncate,
    WrongKey,
)
from recollect.testing.providers import Usage as Cost

from .kit import (
    MOVED,
    NOTHING,
    NOTHING_NEW,
    PATHS,
    bodies_sent,
    each_provider,
    excerpt,
    extractor_of,
    script_of,
    text_in,
)

FAULTS: dict[str, tuple[Fault, type[ExtractionError]]] = {
    "limited": (Refuse(429), ModelUnavailableError),
    "out of time": (Refuse(408), ModelUnavailableError),
    "in conflict": (Refuse(409), ModelUnavailableError),
    "broken": (Refuse(500), ModelUnavailableError),
    "unavailable": (Refuse(503), ModelUnavailableError),
    "overloaded": (Overloaded(), ModelUnavailableError),
    "closed before": (CloseBefore(), ModelUnavailableError),
    "closed after": (CloseAfter(), ModelUnavailableError),
    "truncated": (Truncate(40), ModelUnavailableError),
    "limited with status 200": (Garble(b'{"error": {"code": 429}}'), ModelUnavailableError),
    "broken with status 200": (Garble(b'{"error": "oh no"}'), ModelUnavailableError),
    "wrong key": (WrongKey(), ModelRefusedError),
    "forbidden": (Refuse(403), ModelRefusedError),
    "not found": (Refuse(404), ModelRefusedError),
    "bad request": (Refuse(400), ModelRefusedError),
    "filtered": (Filtered(), ModelRefusedError),
    "not json": (Garble(b"{no"), UnusableAnswerError),
    "a page": (Garble(b"<html>Bad gateway</html>", "text/html"), UnusableAnswerError),
    "another object": (Garble(b'{"object": "list", "data": []}'), UnusableAnswerError),
    "a list": (Garble(b"[]"), UnusableAnswerError),
    "null": (Garble(b"null"), UnusableAnswerError),
    "no body": (Garble(b""), UnusableAnswerError),
    "no utf-8": (Garble(b'{"choices": "\xff"}'), UnusableAnswerError),
    "deep": (Garble(b"[" * 100_000), UnusableAnswerError),
    "odd parts": (
        Garble(b'{"choices": [{"message": 5}], "content": [{"type": "text"}]}'),
        UnusableAnswerError,
    ),
    "odd text": (
        Garble(b'{"choices": [{"message": {"content": 5}}], "content": [{"type": "text", "text": 5}]}'),
        UnusableAnswerError,
    ),
}


@each_provider
@pytest.mark.parametrize("name", FAULTS)
@in_event_loop
async def test_a_fault_is_one_clear_error_and_the_next_call_succeeds(
    server: ProviderServer, provider: str, name: str
) -> None:
    fault, kind = FAULTS[name]
    script_of(server, provider).reply_always(NOTHING_NEW)
    server.fail_next(PATHS[provider], fault)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(kind) as caught:
            await extractor.modification(MOVED)
        assert type(caught.value) is kind
        assert len(server.requests()) == 1, "nothing is retried here"
        assert "Lisbon" not in str(caught.value)
        assert server.api_key not in str(caught.value)
        if "200" not in name:
            assert caught.value.__cause__ is not None
        assert (await extractor.modification(MOVED)).value == NOTHING


UNUSABLE = {
    "empty": Reply(""),
    "blank": Reply(" \n"),
    "prose": Reply("I could not find anything new in this conversation."),
    "null": Reply("null"),
    "a number": Reply("5"),
    "an empty object": Reply("{}"),
    "no list": Reply('{"summary": "The user moved."}'),
    "a list of numbers": Reply("[1, 2]"),
    "wrong types": Reply('{"summary": 5, "candidates": [1, null, [2]]}'),
    "a text for the list": Reply('{"candidates": "none"}'),
    "half": Reply('{"summary": "", "candidates": [{"type": "profile", "text": "The user is"}, {"te'),
    "half of a text": Reply('Sure: {"candidates": [{"text": "The user is a pil'),
    "half in a fence": Reply('```json\n{"candidates": [{"text": "a"},'),
    "cut off": Reply(NOTHING_NEW, stop="length"),
    "two answers": Reply('{"candidates": ["a b"]} or {"candidates": ["c d"]}'),
}


@each_provider
@pytest.mark.parametrize("name", UNUSABLE)
@in_event_loop
async def test_what_cannot_be_read_is_an_error_with_what_was_said_and_what_it_cost(
    server: ProviderServer, provider: str, name: str
) -> None:
    reply = Reply(UNUSABLE[name].text, stop=UNUSABLE[name].stop, usage=Cost(70, 7))
    script_of(server, provider).reply(reply, NOTHING_NEW)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(UnusableAnswerError) as caught:
            await extractor.modification(MOVED)
        assert caught.value.raw_response.strip() == str(reply.text).strip()
        assert (caught.value.prompt_tokens, caught.value.completion_tokens) == (70, 7)
        assert (await extractor.modification(MOVED)).value == NOTHING


@in_event_loop
async def test_half_of_the_arguments_of_a_tool_are_no_answer(server: ProviderServer) -> None:
    server.messages.reply(ToolCall("note_down", '{"candidates": [{"text": "The user has a cat."}, {"te'))
    async with extractor_of(server, "anthropic") as extractor:
        with pytest.raises(UnusableAnswerError, match="ends in the middle"):
            await extractor.modification(MOVED)


@each_provider
@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        json.dumps({"summary": "", "candidates": ["The user has a cat. " * 100_000]}),
        "[" * 900_000,
        '{"a":' * 190_000,
    ],
    ids=["10 MB", "2 MB", "deep", "deeper"],
)
@in_event_loop
async def test_a_huge_answer_is_refused_and_little_of_it_kept(
    server: ProviderServer, provider: str, text: str
) -> None:
    script_of(server, provider).reply(text, NOTHING_NEW)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(UnusableAnswerError) as caught:
            await extractor.modification(MOVED)
        assert 0 < len(caught.value.raw_response) <= 100_000
        assert (await extractor.modification(MOVED)).value == NOTHING


@each_provider
@in_event_loop
async def test_an_answer_without_end_is_not_even_read_to_its_end(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply("x" * 10_000_000)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(UnusableAnswerError, match="longer than 4000000 bytes"):
            await extractor.modification(MOVED)


@each_provider
@pytest.mark.parametrize(
    "reply", [Reply(refusal="I will not."), Reply("I", stop="content_filter")], ids=["refusal", "filter"]
)
@in_event_loop
async def test_a_refusal_is_not_tried_again(server: ProviderServer, provider: str, reply: Reply) -> None:
    script_of(server, provider).reply(reply)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(ModelRefusedError, match="refused") as caught:
            await extractor.modification(MOVED)
    assert caught.value.raw_response in ("I will not.", "I")


@each_provider
@in_event_loop
async def test_the_provider_says_how_long_to_wait(server: ProviderServer, provider: str) -> None:
    server.fail_next(PATHS[provider], Refuse(429, retry_after=7.5))
    server.fail_next(PATHS[provider], Refuse(503))
    async with extractor_of(server, provider) as extractor:
        for expected in (7.5, None):
            with pytest.raises(ModelUnavailableError) as caught:
                await extractor.modification(MOVED)
            assert caught.value.retry_after == expected


@each_provider
@pytest.mark.parametrize("kind", [Hold, Stall])
@in_event_loop
async def test_a_model_that_hangs_is_given_up(server: ProviderServer, provider: str, kind: Any) -> None:
    never = threading.Event()
    script_of(server, provider).reply_always(NOTHING_NEW)
    server.fail_next(PATHS[provider], kind(never))
    async with extractor_of(server, provider, timeout=0.5) as extractor:
        with pytest.raises(ModelUnavailableError):
            await extractor.modification(MOVED)
        never.set()
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(MOVED)).value == NOTHING


@each_provider
@in_event_loop
async def test_a_cancelled_call_ends_and_leaves_nothing_behind(server: ProviderServer, provider: str) -> None:
    let_go = threading.Event()
    script_of(server, provider).reply_always(NOTHING_NEW)
    server.fail_next(PATHS[provider], Hold(let_go))
    async with extractor_of(server, provider) as extractor:
        asking = asyncio.create_task(extractor.modification(MOVED))
        while not server.requests():  # noqa: ASYNC110 - the server is of another thread
            await asyncio.sleep(0.002)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        let_go.set()
        assert (await extractor.modification(MOVED)).value == NOTHING


@each_provider
@in_event_loop
async def test_nobody_listening_is_a_model_that_is_not_there_now(provider: str) -> None:
    server = ProviderServer().start()
    async with extractor_of(server, provider) as extractor:
        server.stop()
        with pytest.raises(ModelUnavailableError, match="no connection"):
            await extractor.modification(MOVED)


@in_event_loop
async def test_a_missing_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    for extractor in (OpenAIExtractor(), AnthropicExtractor("claude-test")):
        with pytest.raises(ModelRefusedError, match="key"):
            await extractor.modification(MOVED)
        await extractor.aclose()


@each_provider
@in_event_loop
async def test_input_that_is_too_long_is_sent_once_more_at_half_its_length(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply_always(NOTHING_NEW)
    server.fail_next(PATHS[provider], TooLong())
    said = excerpt(*[("user", f"fact {number} " + "word " * 400) for number in range(30)])
    async with extractor_of(server, provider) as extractor:
        assert (await extractor.modification(said)).data["messages_shortened"] == 30
    first, second = [text_in(body) for body in bodies_sent(server, provider)]
    assert len(second) < 0.8 * len(first)
    assert estimate_text_tokens(second) < 12_000


@each_provider
@in_event_loop
async def test_input_that_is_still_too_long_is_refused(server: ProviderServer, provider: str) -> None:
    server.fail_next(PATHS[provider], TooLong(), times=3)
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(ModelRefusedError, match="even half of the input"):
            await extractor.modification(MOVED)
    assert len(server.requests()) == 2


@in_event_loop
async def test_an_endpoint_that_knows_no_schema_is_asked_for_an_object_and_then_for_a_text(
    server: ProviderServer,
) -> None:
    unknown = ApiError(400, "'response_format.type' must be 'text'", "response_format.type")
    server.chat.reply(unknown, unknown, NOTHING_NEW, NOTHING_NEW)
    async with extractor_of(server, "openai") as extractor:
        for _ in range(2):
            assert (await extractor.modification(MOVED)).value == NOTHING
    bodies = bodies_sent(server, "openai")
    forms = [body.get("response_format", {}).get("type") for body in bodies]
    assert forms == ["json_schema", "json_object", None, None], "what the endpoint takes is remembered"
    assert bodies[0]["response_format"]["json_schema"]["strict"] is True
    told = [("has this schema" in body["messages"][0]["content"]) for body in bodies]
    assert told == [False, True, True, True], "who takes no schema is told of it in words"


@in_event_loop
async def test_a_model_that_refuses_a_forced_call_is_offered_the_tool(server: ProviderServer) -> None:
    refused = ApiError(400, "tool_choice: forced tool use is not supported by this model")
    noted = Reply(tool_calls=[ToolCall("note_down", {"memories": []})])
    server.messages.reply(refused, noted, NOTHING_NEW)
    async with extractor_of(server, "anthropic") as extractor:
        for _ in range(2):
            assert (await extractor.modification(MOVED)).value == NOTHING
    bodies = bodies_sent(server, "anthropic")
    assert [body["tool_choice"]["type"] for body in bodies] == ["tool", "auto", "auto"]
    assert ["note_down" in body["system"] for body in bodies] == [False, True, True]


@in_event_loop
async def test_a_model_that_knows_no_tools_answers_in_words(server: ProviderServer) -> None:
    unknown = ApiError(400, "tools are not supported")
    server.messages.reply(unknown, unknown, NOTHING_NEW, NOTHING_NEW)
    async with extractor_of(server, "anthropic") as extractor:
        for _ in range(2):
            assert (await extractor.modification(MOVED)).value == NOTHING
    assert ["tools" in body for body in bodies_sent(server, "anthropic")] == [True, True, False, False]


@in_event_loop
async def test_an_endpoint_that_takes_no_form_at_all_is_refused(server: ProviderServer) -> None:
    server.chat.reply_always(ApiError(400, "response_format is unknown"))
    async with extractor_of(server, "openai") as extractor:
        with pytest.raises(ModelRefusedError, match="every response format"):
            await extractor.modification(MOVED)
    assert len(server.requests()) == 3
