"""`recollect mcp --http`, reached by real clients, by several at once, and by those it should not let in."""

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import pytest

from recollect import MemoryStore
from recollect.mcp.access import PinnedOwner
from recollect.server.access.keys import KeyStore
from recollect.testing.contract import in_event_loop

from .clients import (
    MODES,
    headers_of,
    http_server,
    http_server_here,
    over_http,
    recalled,
    remember,
    settings_for,
    words_of,
)

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list", "arguments": {}},
}
ACCEPTED = {"Accept": "application/json, text/event-stream"}


class Running(NamedTuple):
    address: str
    database: Path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server for which no key was made."""
    database = tmp_path_factory.mktemp("open") / "memory.db"
    with http_server(database) as address:
        yield Running(address, database)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Keys of two tenants, and the database that they are in."""
    database = tmp_path_factory.mktemp("keys") / "memory.db"

    async def make() -> dict[str, str]:
        async with KeyStore(database) as store:
            made = {"database": str(database)}
            for name, tenant, scope in (
                ("acme", "acme", "write"),
                ("reader", "acme", "read"),
                ("other", "other", "write"),
                ("revoked", "acme", "admin"),
            ):
                key, made[name] = await store.create(tenant, scope)  # type: ignore[arg-type]
            await store.revoke(key.key_id)
            return made

    return asyncio.run(make())


@pytest.fixture(scope="module")
def closed(keys: dict[str, str]) -> Iterator[Running]:
    """A server that needs keys, and so may listen on any address."""
    with http_server(keys["database"], "--host", "0.0.0.0") as address:
        yield Running(address.replace("0.0.0.0", "127.0.0.1"), Path(keys["database"]))


def post(address: str, body: Any = CALL, **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {"Content-Type": "application/json", **ACCEPTED, **headers}
    return httpx2.post(address, content=content, headers=told)


@pytest.mark.parametrize("mode", MODES)
@in_event_loop
async def test_a_client_remembers_and_recalls(opened: Running, mode: str) -> None:
    async with over_http(opened.address, mode, user=f"ada-{mode}") as client:
        entry_id = await remember(client, "The user lives in Lisbon.")
        assert entry_id in await recalled(client, "Where does the user live?")
        forgotten = await client.call_tool("forget", {"entry_id": entry_id})
        assert forgotten.structured_content["removed"] == 1


@in_event_loop
async def test_the_headers_may_begin_with_x(opened: Running) -> None:
    assert post(opened.address, **{"X-Recollect-User": "ada", "X-Recollect-Agent": "vet"}).status_code == 200
    both = post(opened.address, **{"X-Recollect-User": "ada", "Recollect-User": "bob"})
    assert both.status_code == 422, "which of them is meant is not known"


@in_event_loop
async def test_the_headers_say_whose_memory_it_is(opened: Running) -> None:
    async with over_http(opened.address, user="%E7%BE%8E", agent="helper") as client:
        await remember(client, "The user plays chess.")
    async with MemoryStore(opened.database, embedder=None, workers=0) as store:
        assert len(await store.list_entries("helper", "美")) == 1
    for other in ({"user": "%E7%BE%8E"}, {"user": "bob", "agent": "helper"}):
        async with over_http(opened.address, **other) as client:
            assert await recalled(client, "chess") == "Nothing is remembered about that."


@in_event_loop
async def test_clients_at_once_do_not_see_each_others_users(opened: Running) -> None:
    async def work(user: str, place: str) -> str:
        async with over_http(opened.address, user=user) as client:
            await remember(client, f"The user lives in {place}.")
            return words_of(await client.call_tool("list", {}))

    places = {"u1": "Lisbon", "u2": "Porto", "u3": "Faro"}
    told = await asyncio.gather(*(work(user, place) for user, place in places.items()))
    for listed, place in zip(told, places.values(), strict=True):
        assert [each for each in places.values() if each in listed] == [place]


def test_a_request_that_names_no_user_is_refused(opened: Running) -> None:
    answer = post(opened.address)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "header.Recollect-User"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_nothing_but_post(opened: Running, method: str) -> None:
    answer = httpx2.request(method, opened.address, headers={**ACCEPTED, "Recollect-User": "ada"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_a_page_in_a_browser_does_not_reach_an_open_server(
    opened: Running, headers: dict[str, str], status: int
) -> None:
    assert post(opened.address, **{"Recollect-User": "ada", **headers}).status_code == status


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"jsonrpc": "2.0"}', b"[" * 100_000])
def test_what_is_no_message_is_refused(opened: Running, body: bytes) -> None:
    answer = post(opened.address, body, **{"Recollect-User": "ada"})
    assert answer.status_code == 400
    assert "Traceback" not in answer.text


def test_a_body_that_is_too_large_is_refused(opened: Running) -> None:
    assert post(opened.address, b"a" * 300_000, **{"Recollect-User": "ada"}).status_code == 413


def test_a_client_that_hangs_up_in_the_middle_harms_nobody(opened: Running) -> None:
    place = urlsplit(opened.address)
    for sent in (
        b"POST /mcp HTTP/1.1\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 99\r\n\r\n{",
    ):
        with socket.create_connection((place.hostname, place.port)) as connection:
            connection.sendall(sent)
    assert post(opened.address, **{"Recollect-User": "ada"}).status_code == 200


def test_a_server_for_one_user_serves_no_other(tmp_path: Path) -> None:
    with http_server_here(settings_for(tmp_path / "memory.db"), PinnedOwner("ada")) as address:
        assert post(address).status_code == 200
        assert post(address, **{"Recollect-User": "ada"}).status_code == 200
        answer = post(address, **{"Recollect-User": "bob"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


# --- keys ---


@in_event_loop
async def test_the_tenant_is_the_keys(closed: Running, keys: dict[str, str]) -> None:
    async with over_http(closed.address, key=keys["acme"], user="ada") as client:
        entry_id = await remember(client, "The user lives in Lisbon.")
    async with over_http(closed.address, key=keys["other"], user="ada") as client:
        assert await recalled(client, "Lisbon") == "Nothing is remembered about that."
        assert (await client.call_tool("forget", {"entry_id": entry_id})).is_error
    async with MemoryStore(closed.database, embedder=None, workers=0, tenant="acme") as store:
        assert await store.get_entry(entry_id) is not None


@in_event_loop
async def test_a_key_that_may_read_is_shown_and_may_use_only_what_reads(
    closed: Running, keys: dict[str, str]
) -> None:
    async with over_http(closed.address, key=keys["reader"], user="eve") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("remember", {"text": "The user is kind.", "kind": "profile"})
        assert await recalled(client, "kind") == "Nothing is remembered about that."
    assert tools == ["recall", "why", "list", "page"]
    assert result.is_error
    assert "the key of this client lacks the scope write, which remember needs" in words_of(result)


@pytest.mark.parametrize("kind", ["none", "revoked", "wrong", "not ours"])
def test_without_a_valid_key_nothing_is_let_in(closed: Running, keys: dict[str, str], kind: str) -> None:
    shown = {"none": None, "revoked": keys["revoked"], "wrong": keys["acme"][:-1] + "x", "not ours": "secret"}
    answer = post(closed.address, **headers_of(shown[kind], "ada"))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_too_many_requests_of_a_tenant_are_put_off(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "memory.db", RECOLLECT_LIMITS__REQUESTS_PER_MINUTE="2")
    with http_server_here(settings) as address:
        answers = [post(address, **{"Recollect-User": "ada"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
