"""SIGTERM while a turn is streamed and runs are in work: the one is finished, the others are handed back."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from recollect.testing.providers import ProviderServer, Reply, Stall
from recollect.testing.servers.service import ServiceServer

from ...sessions.postgres.database import sql
from .conftest import migrated_database
from .places import COMPLETIONS, TALKER, Place, read_events, record, settings_for
from .test_two_instances import LEARNING, learn
from .waiting import wait_until

HELD = "SELECT count(*) FROM memory_queue WHERE lease IS NOT NULL"
DUE = "SELECT count(*) FROM memory_queue WHERE lease IS NULL AND available_at <= extract(epoch FROM now())"


def test_a_streamed_turn_is_finished_and_runs_are_handed_back(
    tmp_path: Path,
    server: ProviderServer,
    postgres_url: str,
    user: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", server.api_key)
    settings = settings_for(
        tmp_path, server, memory={"extractor": "anthropic:claude-test", "own_process": True}
    )
    with migrated_database(postgres_url) as database, ServiceServer(database, settings) as process:
        check(Place(process, database), server, user)


def check(place: Place, server: ProviderServer, user: str) -> None:
    speak_on, never = threading.Event(), threading.Event()
    text = "A long answer, which is told to its end."
    server.messages.reply_always(learn)
    server.fail_next(LEARNING, Stall(never), times=1000)
    server.chat.reply(Reply(text, piece=4))
    server.fail_next(COMPLETIONS, Stall(speak_on, after=1500))
    try:
        with place.client() as client:
            record(client, user)
            wait_until(lambda: sql(place.database, HELD) == [(1,)])
            body = {"user_id": user, "message": "Hello.", "agent": TALKER}
            with client.stream("POST", "/v1/chat/stream", json=body) as answer:
                lines = answer.iter_lines()
                first = read_until_text(lines)
                place.server.signal(signal.SIGTERM)
                wait_until(lambda: refuses(place.url))
                speak_on.set()
                events = read_events(first + list(lines))
        assert place.server.wait() == 0
    finally:
        never.set()
    deltas = [data["text"] for kind, data in events if kind == "text.delta"]
    assert "".join(deltas) == text
    assert (events[-1][0], events[-1][1]["text"]) == ("turn.completed", text)
    kept = "SELECT content FROM conversation_messages WHERE role = 'assistant'"
    assert sql(place.database, kept) == [(text,)]
    assert (sql(place.database, HELD), sql(place.database, DUE)) == ([(0,)], [(1,)])


def read_until_text(lines: Iterator[str]) -> list[str]:
    """The lines of a stream up to the first piece of the answer."""
    read: list[str] = []
    while "event: text.delta" not in read:
        read.append(next(lines))
    return read


def refuses(url: str) -> bool:
    """Whether nobody listens there any more."""
    try:
        httpx2.get(f"{url}/healthz")
    except httpx2.ConnectError:
        return True
    return False
