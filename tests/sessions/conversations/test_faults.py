"""Errors of the API pass through, nothing is stored twice, and the next call works."""

import asyncio
import socket
import threading
from typing import Any

import openai
import pytest

from recollect import Item, StorageError
from recollect.sessions.conversations import OpenAIConversationsSession, PartialBatchError
from recollect.testing.contract import in_event_loop, message
from recollect.testing.providers import (
    CloseAfter,
    CloseBefore,
    Fault,
    Garble,
    Hold,
    ProviderServer,
    Refuse,
    Truncate,
)

CREATE = "POST /v1/conversations"
ADD = "POST /v1/conversations/*/items"
LIST = "GET /v1/conversations/*/items"
DELETE_ITEM = "DELETE /v1/conversations/*/items/*"
DELETE = "DELETE /v1/conversations/*"


def stored(server: ProviderServer, session: OpenAIConversationsSession) -> list[str]:
    return [item["content"][0]["text"] for item in server.conversations.items_of(session.session_id)]


def numbered(count: int) -> list[Item]:
    return [message(n) for n in range(count)]


async def session_with(client: openai.AsyncOpenAI, *texts: str) -> OpenAIConversationsSession:
    session = OpenAIConversationsSession(openai_client=client)
    await session.get_items(limit=0)
    await session.add_items([message(text) for text in texts])
    return session


async def arrived(server: ProviderServer, pattern: str, number: int = 1) -> None:
    """Wait until so many requests have reached the server."""
    while len(server.requests(pattern)) < number:  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.01)


# --- errors pass through ---

ERRORS: dict[str, tuple[Fault, type[Exception]]] = {
    "unauthorised": (Refuse(401), openai.AuthenticationError),
    "forbidden": (Refuse(403), openai.PermissionDeniedError),
    "limited": (Refuse(429), openai.RateLimitError),
    "broken": (Refuse(500), openai.InternalServerError),
    "unavailable": (Refuse(503), openai.InternalServerError),
    "closed": (CloseBefore(), openai.APIConnectionError),
}


@pytest.mark.parametrize("name", ERRORS)
@in_event_loop
async def test_errors_of_the_api_pass_through_and_the_next_call_works(
    server: ProviderServer, hasty_client: openai.AsyncOpenAI, name: str
) -> None:
    fault, error = ERRORS[name]
    session = OpenAIConversationsSession(openai_client=hasty_client)
    uses: list[tuple[str, Any]] = [
        (CREATE, session.get_items),
        (LIST, session.get_items),
        (ADD, lambda: session.add_items([message("a")])),
        (LIST, session.pop_item),
        (ADD, lambda: session.add_items(numbered(45))),
        (DELETE_ITEM, session.pop_item),
        (DELETE, session.clear_session),
    ]
    for pattern, use in uses:
        server.fail_next(pattern, fault)
        with pytest.raises(error) as caught:
            await use()
        assert type(caught.value) is error
        await use()
    assert server.conversations.ids() == []


@in_event_loop
async def test_a_wrong_key(server: ProviderServer, client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client.copy(api_key="wrong"))
    for use in (session.get_items, session.pop_item, lambda: session.add_items([message("a")])):
        with pytest.raises(openai.AuthenticationError):
            await use()
    assert server.conversations.ids() == []


@in_event_loop
async def test_a_conversation_that_is_not_there(server: ProviderServer, client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(conversation_id="conv_gone", openai_client=client)
    for use in (session.get_items, session.pop_item, lambda: session.add_items([message("a")])):
        with pytest.raises(openai.NotFoundError, match="conv_gone"):
            await use()
    await session.clear_session()
    assert await session.get_items() == []
    assert server.conversations.ids() == [session.session_id]


@in_event_loop
async def test_no_server(client: openai.AsyncOpenAI) -> None:
    nowhere = client.copy(base_url=f"http://127.0.0.1:{free_port()}/v1", max_retries=0)
    session = OpenAIConversationsSession(conversation_id="conv_1", openai_client=nowhere)
    for use in (session.get_items, session.clear_session, lambda: session.add_items([message("a")])):
        with pytest.raises(openai.APIConnectionError):
            await use()


@in_event_loop
async def test_a_slow_answer_is_a_timeout_of_the_client(
    server: ProviderServer, hasty_client: openai.AsyncOpenAI
) -> None:
    patient = await session_with(hasty_client, "a")
    # The connection itself may take long. A late answer is what the client gives up.
    hasty = hasty_client.copy(timeout=openai.Timeout(60, read=0.05))
    session = OpenAIConversationsSession(conversation_id=patient.session_id, openai_client=hasty)
    let_go = threading.Event()
    server.fail_next("* **", Hold(let_go), times=3)
    for use in (session.get_items, session.pop_item, lambda: session.add_items([message("b")])):
        with pytest.raises(openai.APITimeoutError):
            await use()
    let_go.set()
    while len(stored(server, session)) < 2:  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.01)
    assert stored(server, session) == ["a", "b"], "what was sent was done in the end, once"


GARBAGE: dict[str, Fault] = {
    "not JSON": Garble(),
    "a page of a proxy": Garble(content_type="text/html"),
    "another object": Garble(b'{"hello": "world"}'),
    "a list": Garble(b"[]"),
    "null": Garble(b"null"),
    "items that are none": Garble(b'{"data": [1, null]}'),
}


@pytest.mark.parametrize("name", GARBAGE)
@in_event_loop
async def test_an_answer_that_cannot_be_read_is_a_clear_error(
    server: ProviderServer, client: openai.AsyncOpenAI, name: str
) -> None:
    session = await session_with(client, "a", "b")
    for use in (session.get_items, session.pop_item):
        server.fail_next(LIST, GARBAGE[name])
        with pytest.raises(StorageError, match="cannot be parsed"):
            await use()
    if name != "items that are none":
        server.fail_next(CREATE, GARBAGE[name])
        with pytest.raises(StorageError, match="cannot be parsed"):
            await OpenAIConversationsSession(openai_client=client).get_items()
    assert stored(server, session) == ["a", "b"]


@in_event_loop
async def test_a_write_needs_no_more_than_a_good_status(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = await session_with(client, "a", "b")
    server.fail_next("POST **", Garble())
    server.fail_next("DELETE **", Garble(), times=2)
    await session.add_items([message("c")])
    assert (await session.pop_item())["content"][0]["text"] == "c"
    assert stored(server, session) == ["a", "b"]
    await session.clear_session()
    assert server.conversations.ids() == []


@in_event_loop
async def test_a_conversation_whose_creation_failed_is_created_by_the_next_call(
    server: ProviderServer, hasty_client: openai.AsyncOpenAI
) -> None:
    server.fail_next(CREATE, Refuse(500))
    session = OpenAIConversationsSession(openai_client=hasty_client)
    with pytest.raises(openai.InternalServerError):
        await session.add_items([message("a")])
    await session.add_items([message("b")])
    assert stored(server, session) == ["b"]


@in_event_loop
async def test_a_conversation_that_could_not_be_deleted_is_not_forgotten(
    server: ProviderServer, hasty_client: openai.AsyncOpenAI
) -> None:
    session = await session_with(hasty_client, "a")
    server.fail_next(DELETE, Refuse(500))
    with pytest.raises(openai.InternalServerError):
        await session.clear_session()
    assert stored(server, session) == ["a"]


# --- retries ---

# After these, only the server knows whether the request was executed.
LOST: dict[str, tuple[Fault, type[Exception]]] = {
    "closed": (CloseAfter(), openai.APIConnectionError),
    "truncated": (Truncate(), openai.APIConnectionError),
    "broken": (Refuse(500, done=True), openai.InternalServerError),
    "a gateway's timeout": (Refuse(504, done=True), openai.InternalServerError),
}


@pytest.mark.parametrize("name", LOST)
@in_event_loop
async def test_a_batch_whose_answer_was_lost_is_not_sent_again(
    server: ProviderServer, client: openai.AsyncOpenAI, name: str
) -> None:
    fault, error = LOST[name]
    assert client.max_retries == 2
    session = await session_with(client)
    server.fail_next(ADD, fault)
    with pytest.raises(error):
        await session.add_items([message("once")])
    assert len(server.requests(ADD)) == 1
    assert stored(server, session) == ["once"]


@pytest.mark.parametrize("name", LOST)
@in_event_loop
async def test_a_pop_whose_answer_was_lost_is_not_sent_again(
    server: ProviderServer, client: openai.AsyncOpenAI, name: str
) -> None:
    fault, error = LOST[name]
    session = await session_with(client, "a", "b", "c")
    server.fail_next(DELETE_ITEM, fault)
    with pytest.raises(error):
        await session.pop_item()
    assert stored(server, session) == ["a", "b"]
    assert (await session.pop_item())["content"][0]["text"] == "b"


@pytest.mark.parametrize("status", [409, 429])
@in_event_loop
async def test_what_the_api_refused_for_now_is_sent_again(
    server: ProviderServer, client: openai.AsyncOpenAI, status: int
) -> None:
    session = await session_with(client, "a")
    refusal = Refuse(status, retry_after=0.01)
    server.fail_next(ADD, refusal, times=2)
    server.fail_next(DELETE_ITEM, refusal, times=2)
    server.fail_next(LIST, refusal, times=2)
    await session.add_items([message("b")])
    assert (await session.pop_item())["content"][0]["text"] == "b"
    assert stored(server, session) == ["a"]
    assert len(server.requests(ADD)) == 1 + 3


@pytest.mark.parametrize(("retry_after", "sent"), [(0.0, 3), (3600.0, 1)])
@in_event_loop
async def test_a_lasting_rate_limit_passes_through(
    server: ProviderServer, client: openai.AsyncOpenAI, retry_after: float, sent: int
) -> None:
    """After as many attempts as the client makes; at once if `Retry-After` is too long."""
    session = await session_with(client)
    server.fail_next(ADD, Refuse(429, retry_after=retry_after), times=10)
    with pytest.raises(openai.RateLimitError):
        await session.add_items([message("a")])
    assert len(server.requests(ADD)) == sent
    assert stored(server, session) == []


@in_event_loop
async def test_what_never_reached_a_server_is_sent_again(client: openai.AsyncOpenAI) -> None:
    """The session starts to write while no server listens. The server starts during the retries."""
    port = free_port()
    session = OpenAIConversationsSession(
        conversation_id="conv_1",
        openai_client=client.copy(base_url=f"http://127.0.0.1:{port}/v1", max_retries=50),
    )
    adding = asyncio.create_task(session.add_items([message("a")]))
    await asyncio.sleep(0.1)
    late = ProviderServer(port=port)
    late.conversations.add("conv_1")
    with late:
        await adding
    assert stored(late, session) == ["a"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
    return port


# --- a batch that is split ---


@pytest.mark.parametrize(
    ("fault", "error", "arrived", "in_doubt"),
    [
        (Refuse(401), openai.AuthenticationError, 40, 0),
        (Refuse(400), openai.BadRequestError, 40, 0),
        (Refuse(500), openai.InternalServerError, 40, 10),
        (CloseBefore(), openai.APIConnectionError, 40, 10),
        (CloseAfter(), openai.APIConnectionError, 50, 10),
    ],
)
@in_event_loop
async def test_an_error_in_the_middle_says_how_many_were_stored(
    server: ProviderServer,
    client: openai.AsyncOpenAI,
    fault: Fault,
    error: type[Exception],
    arrived: int,
    in_doubt: int,
) -> None:
    session = await session_with(client)
    server.fail_next(ADD, fault, after=2)
    with pytest.raises(PartialBatchError, match="first 40 of 50 items were stored") as caught:
        await session.add_items(numbered(50))
    assert (caught.value.stored, caught.value.in_doubt, caught.value.total) == (40, in_doubt, 50)
    assert ("it is unknown" in str(caught.value)) == bool(in_doubt)
    assert type(caught.value.__cause__) is error
    assert isinstance(caught.value, StorageError)
    assert stored(server, session) == [str(n) for n in range(arrived)]
    await session.add_items(numbered(50)[arrived:])
    assert stored(server, session) == [str(n) for n in range(50)]


@in_event_loop
async def test_a_rate_limit_in_the_middle_is_waited_for(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = await session_with(client)
    server.fail_next(ADD, Refuse(429, retry_after=0.01), times=2, after=1)
    await session.add_items(numbered(50))
    assert stored(server, session) == [str(n) for n in range(50)]


# --- concurrent pops ---


@in_event_loop
async def test_an_item_that_another_popped_meanwhile_is_left_to_them(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    slow = await session_with(client, "a", "b", "c")
    quick = OpenAIConversationsSession(conversation_id=slow.session_id, openai_client=client)
    let_go = threading.Event()
    server.fail_next(DELETE_ITEM, Hold(let_go))
    popping = asyncio.create_task(slow.pop_item())
    await arrival(server, DELETE_ITEM)
    taken = await quick.pop_item()
    let_go.set()
    assert [item["content"][0]["text"] for item in (taken, await popping)] == ["c", "b"]
    assert stored(server, slow) == ["a"]


@in_event_loop
async def test_an_item_that_can_be_read_but_not_deleted_is_an_error(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = await session_with(client, "a")
    server.fail_next(DELETE_ITEM, Refuse(404), times=5)
    with pytest.raises(openai.NotFoundError):
        await session.pop_item()
    assert len(server.requests(DELETE_ITEM)) == 2


async def arrival(server: ProviderServer, pattern: str, count: int = 1) -> None:
    while len(server.requests(pattern)) < count:  # noqa: ASYNC110 - the server is of another thread
        await asyncio.sleep(0.002)


# --- cancellation ---


@in_event_loop
async def test_who_is_cancelled_leaves_at_once_and_the_batch_is_finished(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = await session_with(client)
    let_go = threading.Event()
    server.fail_next(ADD, Hold(let_go), after=1)
    adding = asyncio.create_task(session.add_items(numbered(45)))
    await arrival(server, ADD, 2)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert not let_go.is_set()
    assert len(stored(server, session)) == 20
    reading = asyncio.create_task(session.get_items())
    await asyncio.sleep(0.02)
    assert not reading.done(), "who comes after waits for it"
    let_go.set()
    assert len(await reading) == 45


@in_event_loop
async def test_who_is_cancelled_while_waiting_has_done_nothing(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = await session_with(client)
    let_go = threading.Event()
    server.fail_next(ADD, Hold(let_go))
    first = asyncio.create_task(session.add_items([message("first")]))
    await arrival(server, ADD)
    waiting = [
        asyncio.create_task(use())
        for use in (lambda: session.add_items([message("second")]), session.pop_item, session.clear_session)
    ]
    third = asyncio.create_task(session.add_items([message("third")]))
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    assert [type(outcome) for outcome in await asyncio.gather(*waiting, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 3
    let_go.set()
    await asyncio.gather(first, third)
    assert stored(server, session) == ["first", "third"]


@in_event_loop
async def test_a_read_that_is_cancelled_stops(server: ProviderServer, client: openai.AsyncOpenAI) -> None:
    session = await session_with(client, "a")
    never = threading.Event()
    server.fail_next(LIST, Hold(never))
    reading = asyncio.create_task(session.get_items())
    await arrived(server, LIST)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert len(await session.get_items()) == 1
    never.set()


def test_an_event_loop_that_ends_under_a_write_leaves_no_lock_behind(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = asyncio.run(session_with(client, "a"))
    never = threading.Event()
    server.fail_next(ADD, Hold(never))

    async def give_up() -> None:
        sent = len(server.requests(ADD))
        writing = asyncio.create_task(session.add_items([message("b")]))
        await arrived(server, ADD, sent + 1)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(give_up())
    assert len(asyncio.run(session.get_items())) == 1
    never.set()
