"""A full run with planted contents and secrets, through faults too: none are in what the service tells of it.

On PostgreSQL the database goes away in the middle, which is told, and comes back.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from recollect.migrations import migrate
from recollect.testing.providers import ApiError, CloseBefore, ProviderServer, Refuse, Reply, WrongKey
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.service import ServiceServer

from .places import COMPLETIONS, TALKER, Place, record, say, settings_for, stream
from .waiting import wait_until

SAID = "planted-said"
USER = "planted-user"
PROVIDER_KEY = "planted-provider-key"
PASSWORD = "planted-password"
WORDS = "planted-words-of-a-provider"
ANSWER = Reply(f"You said {SAID}.", piece=5)
UNAVAILABLE = (503, "storage_unavailable")


@dataclass(frozen=True)
class Watched:
    """A service, all that it says, and the spans that it sends."""

    place: Place
    provider: ProviderServer
    spans: list[bytes]

    def told(self) -> str:
        """All that anybody but the users of the service could see."""
        with self.place.client() as client:
            metrics = httpx2.get(f"{self.place.url}/metrics").text
            audit = client.get("/v1/audit", params={"limit": 200}).text
        assert self.place.server.stop() == 0
        spans = b"".join(self.spans).decode("latin-1")
        assert "recollect.access" in self.place.server.log()
        assert "recollect_" in metrics
        assert "conversations.create" in audit
        assert "POST /v1/chat" in spans
        return "\n".join((self.place.server.log(), metrics, audit, spans))


@contextmanager
def span_receiver() -> Iterator[tuple[str, list[bytes]]]:
    """Somebody to send spans to, and what was sent."""
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{receiver.server_port}/v1/traces", received
        receiver.shutdown()
        thread.join()


@contextmanager
def watched(folder: Path, database: str, form: str) -> Iterator[Watched]:
    """A service that tells as much as it can."""
    with span_receiver() as (endpoint, spans), ProviderServer(PROVIDER_KEY) as provider:
        settings = settings_for(
            folder,
            provider,
            memory={"own_process": True},
            logging={"level": "debug", "format": form},
            telemetry={"traces": True, "endpoint": endpoint},
        )
        with ServiceServer(database, settings) as server:
            yield Watched(Place(server, database), provider, spans)


def use(watched: Watched) -> None:
    """Everything that somebody would do with a service, and some things that nobody should."""
    watched.provider.chat.reply_always(ANSWER)
    with watched.place.client() as client:
        made = record(client, USER, f"I live in Lisbon, {SAID}.", f"My name is {SAID}.")
        conversation = made["conversation_id"]
        assert say(client, USER, SAID, conversation_id=conversation).status_code == 200
        stream(client, USER, SAID)
        stream(client, USER, SAID, agent="assistant")
        owner = {"agent_id": TALKER, "user_id": USER}
        client.post("/v1/memories/search", json={"query": SAID, **owner})
        client.post("/v1/memories", json={**owner, "user_id": f"{USER}-2", "profile_content": [SAID]})
        client.get("/v1/conversations", params=owner)
        client.get("/v1/users/export", params={"user_id": USER})
        misuse(client, conversation)
        fail(watched, client, conversation)
        assert client.delete("/v1/users", params={"user_id": USER}).status_code == 200


def misuse(client: httpx2.Client, conversation: str) -> None:
    """Requests that are refused, with something planted wherever there is room."""
    json_type = {"Content-Type": "application/json"}
    client.post("/v1/conversations", content=f'{{"agent_id": "{SAID}"', headers=json_type)
    client.post("/v1/conversations", json={SAID: SAID, "messages": [{"role": SAID, "content": [SAID]}]})
    client.post("/v1/chat", json={"message": SAID, "user_id": USER, "agent": SAID})
    client.get(f"/v1/conversations/{SAID}")
    client.get(f"/v1/{SAID}", params={SAID: SAID})
    client.get("/v1/conversations", params={"cursor": SAID, SAID: SAID})
    client.post(f"/v1/conversations/{conversation}/branches", json={"from_turn": 99, "name": SAID})
    client.request(SAID.upper(), "/v1/conversations")
    client.get("/v1/whoami", headers={"Authorization": f"Bearer {SAID}", "X-Request-Id": f"{SAID} {SAID}"})
    client.post("/v1/conversations", content=SAID * 500_000, headers=json_type)
    client.post(f"/v1/conversations/{conversation}/messages", json={"messages": [{"role": "user"}]})


def fail(watched: Watched, client: httpx2.Client, conversation: str) -> None:
    """A model that fails, and says what it was asked."""
    words = f"{WORDS} {SAID} {PROVIDER_KEY}"
    for fault in (Refuse(400, words), WrongKey(), Refuse(500, words, retry_after=0.01), CloseBefore()):
        watched.provider.fail_next(COMPLETIONS, fault, times=3)
        assert say(client, USER, SAID, conversation_id=conversation).status_code == 502
        watched.provider.reset()
        watched.provider.chat.reply_always(ANSWER)
    watched.provider.chat.reply(Reply(SAID, error=ApiError(500, words)))
    events = stream(client, USER, SAID, conversation_id=conversation)
    assert events[-1][0] == "turn.failed"
    assert WORDS not in str(events)


def check(told: str, key: str) -> None:
    """Whether nothing planted is in what was told; the id of a key may be, its secret not."""
    for planted in (SAID, USER, PROVIDER_KEY, PASSWORD, WORDS, key.rpartition("_")[2]):
        found = [line[:1000] for line in told.splitlines() if planted.lower() in line.lower()]
        assert not found, (planted, found[:3])


def test_nothing_leaks_on_sqlite(tmp_path: Path) -> None:
    with watched(tmp_path, str(tmp_path / "recollect.db"), "json") as service:
        key = service.place.key()
        use(service)
        check(service.told(), key)


def test_nothing_leaks_on_a_database_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    with PostgresServer(PASSWORD) as postgres:
        asyncio.run(migrate(postgres.url))
        with watched(tmp_path, postgres.url, "text") as service:
            key = service.place.key()
            use(service)
            outlive(service, postgres)
            check(service.told(), key)


def outlive(service: Watched, postgres: PostgresServer) -> None:
    """The database is stopped and started: all is told as what it is, and works again by itself."""
    url = service.place.url
    with service.place.client() as client:
        conversation = record(client, USER, f"Before, {SAID}.")["conversation_id"]
        postgres.stop()
        wait_until(lambda: httpx2.get(f"{url}/readyz").status_code == 503)
        parts = httpx2.get(f"{url}/readyz").json()["parts"]
        assert parts["database"] == {"state": "not_ready", "why": "unreachable"}
        assert httpx2.get(f"{url}/healthz").status_code == 200
        for _ in range(3):  # also when the key is remembered no more
            wait_until(lambda: told_by(client.get(f"/v1/conversations/{conversation}")) == UNAVAILABLE, 5)
        body = {"agent_id": TALKER, "user_id": USER, "messages": [{"role": "user", "content": SAID}]}
        assert told_by(client.post("/v1/conversations", json=body)) == UNAVAILABLE
        chat = {"message": SAID, "conversation_id": conversation, "agent": TALKER}
        for path in ("/v1/chat", "/v1/chat/stream"):
            assert told_by(client.post(path, json=chat)) == UNAVAILABLE
        postgres.start()
        wait_until(lambda: httpx2.get(f"{url}/readyz").status_code == 200)
        assert client.get(f"/v1/conversations/{conversation}").status_code == 200
        assert say(client, USER, SAID, conversation_id=conversation).status_code == 200
        record(client, USER, f"After, {SAID}.")


def told_by(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", (answer.status_code, answer.text)
    if answer.status_code == 503:
        assert answer.headers["Retry-After"]
    return answer.status_code, answer.json()["code"]
