"""The primary of the database dies under load, and its standby takes over: nothing acknowledged is lost."""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from recollect.migrations import migrate
from recollect.testing.providers import ProviderServer
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.service import ServiceServer

from .places import TALKER, Place, settings_for
from .waiting import wait_until

pytestmark = pytest.mark.proof
_MORE = 8  # acknowledged by each writer before the primary dies, and again after that


@dataclass
class Acknowledged:
    """What one client was told is stored, and how it was refused."""

    done: list[str] = field(default_factory=list)
    refused: set[tuple[int, str]] = field(default_factory=set)


@dataclass
class Cluster:
    """A service on a primary with a synchronous standby."""

    place: Place
    primary: PostgresServer
    standby: PostgresServer


@pytest.fixture
def cluster(tmp_path: Path, running_server: ProviderServer) -> Iterator[Cluster]:
    with ExitStack() as parts:
        primary = parts.enter_context(PostgresServer())
        asyncio.run(migrate(primary.url))
        standby = parts.enter_context(primary.standby())
        url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        place = Place(ServiceServer(url, settings_for(tmp_path, running_server)), url)
        place.key()
        parts.enter_context(place.server)
        yield Cluster(place, primary, standby)


def post_conversations(place: Place, noted: Acknowledged, stop: threading.Event) -> None:
    """Record one conversation after the other, each for a user of its own, until each is acknowledged."""
    number = 0
    with place.client() as client:
        while not stop.is_set():
            user = f"writer-{number}"
            said = [{"role": "user", "content": f"My name is Ada{number}. I live in Lisbon."}]
            body = {"agent_id": TALKER, "user_id": user, "messages": said}
            if _insist(client, "/v1/conversations", body, noted, stop):
                noted.done.append(user)
            number += 1


def take_turns(place: Place, noted: Acknowledged, stop: threading.Event) -> None:
    """Chat, one new conversation after the other."""
    number = 0
    with place.client() as client:
        while not stop.is_set():
            body = {"user_id": f"talker-{number}", "message": f"Remember {number}.", "agent": TALKER}
            answer = _insist(client, "/v1/chat", body, noted, stop)
            if answer is not None:
                noted.done.append(answer.json()["conversation_id"])
            number += 1


def _insist(
    client: httpx2.Client, path: str, body: dict[str, object], noted: Acknowledged, stop: threading.Event
) -> httpx2.Response | None:
    """Send a request until it succeeds, always with the same key."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    while not stop.is_set():
        answer = client.post(path, json=body, headers=key)
        if answer.status_code < 300:
            return answer
        noted.refused.add((answer.status_code, answer.json()["code"]))
        assert answer.status_code in (409, 503), answer.text
        if answer.status_code == 503:
            assert "Retry-After" in answer.headers, answer.text
        stop.wait(0.1)
    return None


def test_nothing_acknowledged_is_lost(cluster: Cluster, server: ProviderServer) -> None:
    place, stop = cluster.place, threading.Event()
    server.chat.reply_always("Noted.")
    clients: list[tuple[Callable[..., None], Acknowledged]] = [
        (post_conversations, Acknowledged()),
        (take_turns, Acknowledged()),
    ]
    with ThreadPoolExecutor(len(clients)) as pool:
        running = [pool.submit(work, place, noted, stop) for work, noted in clients]

        def have_more(than: Sequence[int], more: int) -> bool:
            for each in running:
                if each.done():
                    each.result()
            return all(len(noted.done) >= had + more for (_, noted), had in zip(clients, than, strict=True))

        try:
            wait_until(lambda: have_more((0, 0), _MORE))
            cluster.primary.kill()
            cluster.standby.promote()
            promoted, before = time.monotonic(), [len(noted.done) for _, noted in clients]
            wait_until(lambda: have_more(before, 1))
            print(f"both wrote again {time.monotonic() - promoted:.2f} s after the promotion")
            wait_until(lambda: have_more(before, _MORE))
        finally:
            stop.set()
        for each in running:
            each.result()
    posted, talked = (noted for _, noted in clients)
    print(posted.refused, talked.refused)
    with place.client() as client:
        check_posted(client, posted.done)
        check_turns(client, talked.done)


def check_posted(client: httpx2.Client, users: list[str]) -> None:
    """Each user has one conversation, and what it says was learned once."""
    for user in users:
        owner = {"agent_id": TALKER, "user_id": user}
        assert len(client.get("/v1/conversations", params=owner).json()["items"]) == 1, user
        wait_until(lambda: _is_learned(client, owner))  # noqa: B023 - used at once
        found = client.get("/v1/memories/of", params=owner).json()
        texts = [text for name, texts in found.items() if name.endswith("_content") for text in texts]
        assert len(texts) == len(set(texts)) > 0, user


def _is_learned(client: httpx2.Client, owner: dict[str, str]) -> bool:
    runs = client.get("/v1/conversations", params=owner).json()["items"]
    (conversation,) = (each["conversation_id"] for each in runs)
    done = client.get(f"/v1/conversations/{conversation}/runs").json()["items"]
    return bool(done) and all(run["status"] == "done" for run in done)


def check_turns(client: httpx2.Client, conversations: list[str]) -> None:
    """Each conversation has its question and its answer, once."""
    for conversation in conversations:
        said = client.get(f"/v1/conversations/{conversation}/messages").json()["items"]
        assert [message["role"] for message in said] == ["user", "assistant"], said
