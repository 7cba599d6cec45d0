"""Every fault works on every route, whole and streamed, and the real clients see it as they would outside."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    CloseAfter,
    CloseBefore,
    Delay,
    Fault,
    Filtered,
    Garble,
    Hold,
    Overloaded,
    ProviderServer,
    Refuse,
    Stall,
    TooLong,
    Truncate,
    WrongKey,
)

from .asking import APIS, PATHS, ask, chat_body, messages_body, responses_body
from .clients import anthropic_of, client_of, sync_client_of

ROUTES = [(api, way) for api in APIS for way in ("sync whole", "async streamed")] + [("embeddings", "sync")]
every_route = pytest.mark.parametrize(("api", "way"), ROUTES, ids="-".join)

LIMITED = (openai.RateLimitError, anthropic.RateLimitError)
BROKEN = (openai.InternalServerError, anthropic.InternalServerError)
UNAUTHORISED = (openai.AuthenticationError, anthropic.AuthenticationError)
BAD = (openai.BadRequestError, anthropic.BadRequestError)
TIMED_OUT = (openai.APITimeoutError, anthropic.APITimeoutError, httpx2.TimeoutException)
# Anthropic's client lets what breaks a stream through as it is.
CUT_OFF = (openai.APIConnectionError, anthropic.APIConnectionError, httpx2.TransportError)
UNREADABLE = (ValueError, openai.APIError, anthropic.APIError, AssertionError, AttributeError)

FAULTS: dict[str, tuple[Fault, Any]] = {
    "limited": (Refuse(429, retry_after=3), LIMITED),
    "broken": (Refuse(500), BROKEN),
    "unavailable": (Refuse(503), BROKEN),
    "broken when done": (Refuse(500, done=True), BROKEN),
    "overloaded": (Overloaded(), BROKEN),
    "wrong key": (WrongKey(), UNAUTHORISED),
    "too long": (TooLong(), BAD),
    "filtered": (Filtered(), BAD),
    "closed before": (CloseBefore(), CUT_OFF),
    "closed after": (CloseAfter(), CUT_OFF),
    "truncated": (Truncate(40), CUT_OFF),
    "garbled": (Garble(b"{no"), UNREADABLE),
}


def question(server: ProviderServer, api: str, way: str, **options: Any) -> Any:
    """Ask on a route, which always has an answer unless a fault is in the way."""
    if api == "embeddings":
        with sync_client_of(server, **options) as client:
            return client.embeddings.create(model="m", input="hi", dimensions=4).data[0].embedding
    getattr(server, api).reply_always("said")
    return ask(server, api, way, **options).text


def path_of(api: str) -> str:
    return PATHS.get(api, "POST /v1/embeddings")


@every_route
@pytest.mark.parametrize("name", FAULTS)
def test_a_request_fails_and_the_next_one_does_not(
    server: ProviderServer, api: str, way: str, name: str
) -> None:
    fault, error = FAULTS[name]
    server.fail_next(path_of(api), fault)
    with pytest.raises(error):
        question(server, api, way)
    assert question(server, api, way)
    assert len(server.requests(path_of(api))) == 2


@every_route
@pytest.mark.parametrize(
    "fault", [Refuse(429, retry_after=0.01), CloseBefore(), CloseAfter()], ids=["limited", "before", "after"]
)
def test_the_clients_own_retries_come_through(
    server: ProviderServer, api: str, way: str, fault: Fault
) -> None:
    server.fail_next(path_of(api), fault, times=1)
    assert question(server, api, way, max_retries=1)
    assert len(server.requests(path_of(api))) == 2


@every_route
def test_a_slow_first_byte_outlasts_the_patience_of_a_client(
    server: ProviderServer, api: str, way: str
) -> None:
    server.fail_next(path_of(api), Delay(0.4))
    with pytest.raises(TIMED_OUT):
        question(server, api, way, timeout=0.1)


@every_route
@pytest.mark.parametrize("kind", [Hold, Stall])
def test_an_answer_is_held_until_it_is_let_go(
    server: ProviderServer, api: str, way: str, kind: Callable[[threading.Event], Fault]
) -> None:
    let_go = threading.Event()
    server.fail_next(path_of(api), kind(let_go))
    try:
        with pytest.raises(TIMED_OUT):
            question(server, api, way, timeout=0.1)
    finally:
        let_go.set()
    server.fail_next(path_of(api), kind(let_go))
    assert question(server, api, way)


# --- the dialects ---


@pytest.mark.parametrize(
    ("api", "param", "code", "message"),
    [
        ("responses", "input", "context_length_exceeded", "exceeds the context window"),
        ("chat", "messages", "context_length_exceeded", "maximum context length is 8000 tokens"),
        ("embeddings", "input", None, "maximum context length is 8000 tokens"),
    ],
)
def test_too_long_is_said_in_the_words_of_openai(
    server: ProviderServer, api: str, param: str, code: str | None, message: str
) -> None:
    server.fail_next(path_of(api), TooLong(9000, 8000))
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        question(server, api, "sync whole")
    assert (caught.value.param, caught.value.code) == (param, code)
    assert caught.value.type == "invalid_request_error"


def test_too_long_is_said_in_the_words_of_anthropic(server: ProviderServer) -> None:
    server.fail_next("POST /v1/messages", TooLong(9000, 8000))
    with pytest.raises(anthropic.BadRequestError) as caught:
        question(server, "messages", "sync whole")
    assert caught.value.api_message == "prompt is too long: 9000 tokens > 8000 maximum"
    assert caught.value.type == "invalid_request_error"


def test_overload_has_a_status_of_its_own_with_anthropic(server: ProviderServer) -> None:
    server.fail_next("POST /v1/messages", Overloaded())
    with pytest.raises(anthropic.OverloadedError):
        question(server, "messages", "async streamed")


# --- in the middle of a stream ---

WORDS = " ".join(f"word{number}" for number in range(200))


async def begin(server: ProviderServer, api: str, client: Any) -> Any:
    getattr(server, api).reply(WORDS)
    if api == "responses":
        return await client.responses.create(**responses_body(stream=True))
    if api == "chat":
        return await client.chat.completions.create(**chat_body(stream=True))
    return await client.messages.create(**messages_body(stream=True))


@pytest.mark.parametrize("api", APIS)
@in_event_loop
async def test_a_stream_breaks_off_after_its_beginning(server: ProviderServer, api: str) -> None:
    server.fail_next(PATHS[api], Truncate(8000))
    events = []
    async with (anthropic_of if api == "messages" else client_of)(server) as client:
        stream = await begin(server, api, client)
        with pytest.raises(CUT_OFF):
            async for event in stream:
                events += [event]
    assert 5 < len(events) < 150


@pytest.mark.parametrize("api", APIS)
@in_event_loop
async def test_a_stream_stalls_in_its_middle_and_goes_on(server: ProviderServer, api: str) -> None:
    let_go = threading.Event()
    server.fail_next(PATHS[api], Stall(let_go, after=8000))
    async with (anthropic_of if api == "messages" else client_of)(server) as client:
        stream = await begin(server, api, client)
        events = [await anext(stream) for _ in range(6)]
        collecting = asyncio.create_task(rest(stream))
        await asyncio.sleep(0.1)
        assert not collecting.done()
        let_go.set()
        events += await collecting
    assert said_in(api, events) == WORDS


async def rest(stream: Any) -> list[Any]:
    return [event async for event in stream]


def said_in(api: str, events: list[Any]) -> str:
    if api == "chat":
        return "".join(event.choices[0].delta.content or "" for event in events)
    if api == "responses":
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")
    return "".join(event.delta.text for event in events if event.type == "content_block_delta")


@pytest.mark.parametrize("api", APIS)
@in_event_loop
async def test_a_client_may_leave_in_the_middle_of_a_stream(server: ProviderServer, api: str) -> None:
    async with (anthropic_of if api == "messages" else client_of)(server) as client:
        stream = await begin(server, api, client)
        await anext(stream)
        await stream.close()
    assert await asyncio.to_thread(question, server, api, "sync whole") == "said"
