"""What a network adds: lost connections, busy services, other servers, wrong keys."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from recollect import (
    AccessDeniedError,
    ConnectionLostError,
    MemoryStore,
    RemoteMemoryStore,
    RemoteSession,
    StorageError,
    TransientError,
    UnreachableError,
)
from recollect.errors import InvalidValueError
from recollect.testing.contract import in_event_loop

from ...server.routes.conftest import keyed_service as keyed_service
from ...server.routes.running import Running

SAID = [{"role": "user", "content": "I moved to Lisbon."}]
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle) -> AsyncIterator[str]:
    """A server on loopback that handles each connection in this way."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        ),
        0,
    )
    return head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + await reader.readexactly(length)


class Cutting:
    """A proxy to a service. It delivers each request, and cuts the connection before the first answers.

    What a browser asks before a request of another origin is always answered.
    """

    def __init__(self, service_url: str, cuts: int) -> None:
        self._port = urlsplit(service_url).port
        self._cuts = cuts
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        self.requests.append(request)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        inner_writer.write(request)
        answer = await inner_reader.read()
        inner_writer.close()
        self._cuts -= not request.startswith(b"OPTIONS")
        if self._cuts < 0 or request.startswith(b"OPTIONS"):
            writer.write(answer)
            await writer.drain()


def answering(*answers: bytes) -> tuple[Handle, list[bytes]]:
    """Gives these answers one after the other, and the last one again and again."""
    requests: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(answers[min(len(requests), len(answers)) - 1])
        await writer.drain()

    return handle, requests


def problem(status: int, code: str, *headers: str) -> bytes:
    body = json.dumps({"status": status, "code": code, "detail": "in other words"}).encode()
    head = [f"HTTP/1.1 {status} x", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@in_event_loop
async def test_a_write_whose_answer_is_lost_is_repeated_and_stored_once(service_on_sqlite: Running) -> None:
    cutting = Cutting(service_on_sqlite.url, cuts=2)
    async with listening(cutting) as url, RemoteMemoryStore(url) as store:
        made = await store.record_conversation("assistant", "lost answer", SAID)
        assert len([each for each in cutting.requests if each.startswith(b"POST")]) == 3
        rows = await store.list_conversations("assistant", "lost answer")
        assert [row["conversation_id"] for row in rows] == [made.conversation_id]
    cutting = Cutting(service_on_sqlite.url, cuts=1)
    async with listening(cutting) as url, RemoteMemoryStore(url) as store:
        entry = await store.add_entry("another", "lost answer", "profile", "Likes tea.")
        assert await store.list_entries("another", "lost answer") == [entry]


@in_event_loop
async def test_an_erasure_whose_answer_is_lost_is_not_repeated(service_on_sqlite: Running) -> None:
    async with RemoteMemoryStore(service_on_sqlite.url) as store:
        made = await store.record_conversation("assistant", "lost erasure", SAID)
    cutting = Cutting(service_on_sqlite.url, cuts=1)
    async with listening(cutting) as url, RemoteMemoryStore(url) as store:
        with pytest.raises(ConnectionLostError, match="outcome"):
            await store.erase_conversation(made.conversation_id)
        assert len(cutting.requests) == 1
        assert await store.get_conversation(made.conversation_id) is None


@in_event_loop
async def test_a_busy_service_is_asked_again() -> None:
    busy = problem(429, "rate_limited", "Retry-After: 0")
    handle, requests = answering(busy, busy, problem(404, "not_found"))
    async with listening(handle) as url, RemoteMemoryStore(url) as store:
        assert await store.get_entry("x") is None
        assert len(requests) == 3


@in_event_loop
async def test_a_service_that_stays_busy_is_a_transient_error() -> None:
    handle, requests = answering(problem(503, "overloaded"))
    async with listening(handle) as url, RemoteMemoryStore(url, retries=2) as store:
        with pytest.raises(TransientError):
            await store.record_conversation("assistant", "ada", SAID)
        assert len(requests) == 3
        keys = {line for each in requests for line in each.split(b"\r\n") if b"dempotency-" in line}
        assert len(keys) == 1  # a retry is recognised as such


@in_event_loop
async def test_an_edit_is_not_repeated_if_the_database_was_lost_meanwhile() -> None:
    handle, requests = answering(problem(503, "storage_unavailable", "Retry-After: 0"))
    async with listening(handle) as url, RemoteMemoryStore(url) as store:
        with pytest.raises(ConnectionLostError):
            await store.edit_entry("x", "text")
        assert len(requests) == 1


@in_event_loop
async def test_a_service_that_never_answers_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as url, RemoteMemoryStore(url, timeout=0.3) as store:
        with pytest.raises(ConnectionLostError):
            await store.coverage()


@in_event_loop
async def test_no_service_at_all() -> None:
    async with RemoteMemoryStore("http://127.0.0.1:1", retries=1) as store:
        with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1"):
            await store.coverage()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>",
        b"HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    ],
)
@in_event_loop
async def test_another_server_is_a_clear_error(answer: bytes) -> None:
    handle, _ = answering(answer)
    async with listening(handle) as url, RemoteMemoryStore(url, key="rk_secret") as store:
        with pytest.raises(StorageError) as raised:
            await store.get_run("r")
        assert "rk_secret" not in str(raised.value)


@in_event_loop
async def test_a_stream_that_does_not_begin_is_requested_again(service_on_sqlite: Running) -> None:
    cutting = Cutting(service_on_sqlite.url, cuts=2)
    async with listening(cutting) as url, RemoteMemoryStore(url) as store:
        assert (await store.export_user("nobody at all"))["conversations"] == []
        assert len(cutting.requests) == 3


@in_event_loop
async def test_a_stream_that_leads_elsewhere_is_an_error_and_not_empty() -> None:
    handle, _ = answering(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")
    async with listening(handle) as url, RemoteSession("s", url) as session:
        with pytest.raises(StorageError):
            await session.get_items()


@in_event_loop
async def test_an_export_that_breaks_off_is_an_error() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n"
    handle, _ = answering(head + b'{"format": "recollect.user/2"}\n')
    async with listening(handle) as url, RemoteMemoryStore(url) as store:
        with pytest.raises(ConnectionLostError):
            await store.export_user("ada")


@in_event_loop
async def test_a_key_decides_whose_data_is_seen(keyed_service: Running) -> None:
    ours, theirs = (keyed_service.make_key("admin", tenant) for tenant in ("acme", "globex"))
    async with RemoteMemoryStore(keyed_service.url, key=ours) as store:
        made = await store.record_conversation("assistant", "ada", SAID)
    async with RemoteMemoryStore(keyed_service.url, key=theirs) as store:
        assert await store.get_conversation(made.conversation_id) is None
    for key in (None, "rk_wrong"):
        async with RemoteMemoryStore(keyed_service.url, key=key) as store:
            with pytest.raises(AccessDeniedError):
                await store.coverage()


def test_one_store_in_several_event_loops(service_on_sqlite: Running) -> None:
    store = RemoteMemoryStore(service_on_sqlite.url)
    for _ in range(3):
        assert asyncio.run(store.get_entry("x")) is None


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://host", {}),
        ("https://", {}),
        ("https://user:secret@host", {}),
        ("https://host?x=1", {}),
        ("https://host", {"key": "line\nbreak"}),
        ("https://host", {"timeout": 0}),
        ("https://host", {"retries": -1}),
    ],
)
def test_bad_options_are_refused(url: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError) as raised:
        RemoteMemoryStore(url, **options)  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)


def test_a_local_store_names_the_remote_one_for_a_web_address() -> None:
    with pytest.raises(ValueError, match="RemoteMemoryStore"):
        MemoryStore("https://host")
