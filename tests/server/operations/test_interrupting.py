"""Turns that the grace of a shutdown does not suffice for: whoever waits for one is told that it failed."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from recollect.testing.providers import ProviderServer, Reply, Stall
from recollect.testing.servers.service import ServiceServer

from ..proof.places import COMPLETIONS, TALKER, read_events, settings_for
from ..proof.waiting import wait_until
from .test_serving import LONGEST

pytestmark = pytest.mark.proof

GRACE = 0.5
ASKED = {"user_id": "ada", "message": "Hello.", "agent": TALKER}


@pytest.fixture
def stuck(tmp_path: Path, server: ProviderServer) -> Iterator[ServiceServer]:
    """A service whose model never comes to an end."""
    never = threading.Event()
    server.chat.reply_always(lambda _: Reply("An answer that nobody hears."))
    server.fail_next(COMPLETIONS, Stall(never), times=10)
    settings = settings_for(tmp_path, server, server={"grace_seconds": GRACE})
    with ServiceServer(str(tmp_path / "recollect.db"), settings) as service:
        yield service
        never.set()


def stop_once_asked(service: ServiceServer, server: ProviderServer) -> None:
    """Stop the service when the model has been asked."""
    wait_until(lambda: server.requests(COMPLETIONS))
    service.signal(signal.SIGTERM)


def test_a_turn_that_is_interrupted_is_answered_as_such(stuck: ServiceServer, server: ProviderServer) -> None:
    with ThreadPoolExecutor(1) as others:
        asking = others.submit(httpx2.post, f"{stuck.url}/v1/chat", json=ASKED, timeout=LONGEST)
        stop_once_asked(stuck, server)
        answer = asking.result()
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert answer.headers["content-type"] == "application/problem+json"
    assert stuck.wait() == 0


def test_a_stream_that_is_interrupted_says_so_at_its_end(
    stuck: ServiceServer, server: ProviderServer
) -> None:
    with httpx2.stream("POST", f"{stuck.url}/v1/chat/stream", json=ASKED, timeout=LONGEST) as answer:
        stop_once_asked(stuck, server)
        events = read_events(answer.iter_lines())
    kinds = [kind for kind, _ in events]
    assert (kinds[0], kinds[-1], events[-1][1]["code"]) == ("turn.started", "turn.failed", "not_ready")
    assert stuck.wait() == 0
