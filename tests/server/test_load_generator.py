"""The load generator of the benchmarks: it counts what it sent, and what came of it."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from benchmarks.service.client import Answer, encode, read_answer
from benchmarks.service.lasting import Held, growth, slope
from benchmarks.service.load import Clock, Load, Outcome, load_ports
from benchmarks.service.streams import Read, events_of, is_whole, most_at_once

_LONG = 30.0  # seconds: a bound that no test comes near


@dataclass
class Echo:
    """A server that counts the bodies it was sent, and refuses some."""

    port: int = 0
    bodies: Counter[str] = field(default_factory=Counter)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request after another; `gone` closes the connection in place of an answer."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies[body] += 1
                if body == "gone":
                    break
                status = b"409 Conflict" if body == "refuse" else b"201 Created"
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")
        except asyncio.IncompleteReadError:
            return  # the client has gone, as it should
        finally:
            writer.close()


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    """Such a server on a free port."""
    served = Echo()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    async with server:
        yield served


def _requests(*bodies: str) -> list[bytes]:
    return [encode("POST", "/", body) for body in bodies]


async def _load(bodies: list[str], connections: int = 3, rate: float | None = None) -> tuple[Outcome, Echo]:
    async with echo() as served:
        outcome = await load_ports(
            [served.port], _requests(*bodies), connections=connections, seconds=_LONG, rate=rate
        )
        return outcome, served


# --- the generator ---


async def _every_request_once(rate: float | None) -> None:
    bodies = [f"body {number}" for number in range(50)]
    outcome, served = await _load(bodies, rate=rate)
    assert served.bodies == Counter(bodies)
    assert len(outcome.latencies) == 50
    assert served.connections == 3
    assert not outcome.failures
    assert outcome.unsent == 0


@pytest.mark.parametrize("rate", [None, 5000.0])
def test_every_request_is_sent_once_and_counted_once(rate: float | None) -> None:
    asyncio.run(_every_request_once(rate))


def test_what_is_refused_or_broken_is_counted_apart_and_has_no_latency() -> None:
    outcome, _ = asyncio.run(_load(["a", "refuse", "b", "refuse", "gone"], connections=1))
    assert len(outcome.latencies) == 2
    assert outcome.failures == {"409": 2, "ConnectionLostError": 1}
    with pytest.raises(AssertionError, match="409"):
        outcome.check()


def test_connections_are_shared_out_among_servers() -> None:
    async def run() -> tuple[int, int]:
        async with echo() as first, echo() as second:
            ports = [first.port, second.port]
            await load_ports(ports, _requests(*map(str, range(8))), connections=4, seconds=_LONG)
            return first.connections, second.connections

    assert asyncio.run(run()) == (2, 2)


def test_no_more_are_asked_at_once_than_there_are_askers() -> None:
    running, most = 0, 0

    async def ask(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    outcome = asyncio.run(Load([ask] * 4, range(100), seconds=_LONG).run())
    assert most == 4
    assert len(outcome.latencies) == 100


def test_a_load_without_time_sends_nothing() -> None:
    async def ask(_: int) -> None:
        raise AssertionError("nothing was to be asked")

    assert asyncio.run(Load([ask], range(100), seconds=0).run()).latencies == []


class HandClock(Clock):
    """A clock that goes on only when somebody waits."""

    def __init__(self) -> None:
        self._now = 100.0

    def now(self) -> float:
        """The time so far."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Let time go on."""
        self._now += seconds


def _load_by_hand(answer_seconds: list[float], seconds: float) -> Outcome:
    """One who asks once a second, and is answered after so long."""
    clock = HandClock()
    return asyncio.run(Load([clock.sleep], answer_seconds, seconds=seconds, rate=1.0, clock=clock).run())


def test_at_a_rate_only_what_is_due_in_the_time_is_sent() -> None:
    outcome = _load_by_hand([0.25] * 100, seconds=10)
    assert outcome.latencies == [0.25] * 10
    assert outcome.seconds == 9.25
    assert outcome.unsent == 0


def test_a_latency_counts_from_when_the_request_was_due() -> None:
    assert _load_by_hand([2.5, 0.0, 0.0, 0.0], seconds=10).latencies == [2.5, 1.5, 0.5, 0.0]


def test_what_comes_too_late_is_not_sent_and_is_told() -> None:
    outcome = _load_by_hand([25.0] * 100, seconds=10)
    assert outcome.latencies == [25.0]
    assert outcome.unsent == 9


@pytest.mark.parametrize(("percent", "latency"), [(50, 2.0), (75, 3.0), (99, 4.0), (100, 4.0), (0, 1.0)])
def test_a_percentile_is_a_latency_that_was_measured(percent: float, latency: float) -> None:
    assert Outcome([4.0, 1.0, 3.0, 2.0]).percentile(percent) == latency


# --- the client ---

_WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n8\r\n\r\n0\r\n\r\n!\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(("sent", "body"), [(_WHOLE, b"hello"), (_CHUNKED, b"hello\r\n0\r\n\r\n!")])
def test_an_answer_is_read_when_it_is_whole_and_not_before(sent: bytes, body: bytes) -> None:
    assert all(read_answer(bytearray(sent[:length])) is None for length in range(len(sent)))
    assert read_answer(bytearray(sent)) == Answer(200, body, 0.0)


# --- streams and memory ---


def _stream(*events: tuple[str, dict[str, str]]) -> Answer:
    told = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return Answer(200, f": hello\n\n{told}".encode(), 0.0)


_STARTED, _COMPLETED = ("turn.started", {"turn_id": "1"}), ("turn.completed", {"text": "One two"})
_ONE, _TWO = ("text.delta", {"text": "One "}), ("text.delta", {"text": "two"})


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        ((_STARTED, _ONE, _TWO, _COMPLETED), True),
        ((_STARTED, _TWO, _ONE, _COMPLETED), False),
        ((_STARTED, _ONE, _COMPLETED), False),
        ((_ONE, _TWO, _COMPLETED), False),
        ((_STARTED, _ONE, _TWO), False),
        ((_STARTED, _ONE, _TWO, ("turn.completed", {"text": "One"})), False),
        ((), False),
    ],
)
def test_a_stream_is_whole_if_no_event_is_missing(
    events: tuple[tuple[str, dict[str, str]], ...], whole: bool
) -> None:
    assert is_whole(events_of(_stream(*events)), "One two") is whole


def test_streams_are_open_at_once_from_their_first_event_to_their_end() -> None:
    def read(began_at: float, ended_at: float) -> Read:
        return Read(Answer(200, b"", began_at), 0.0, ended_at)

    assert most_at_once([read(1, 4), read(2, 3), read(3.5, 6), read(5, 7)]) == 2


def test_growth_is_between_the_first_and_the_last_quarter_and_the_slope_goes_through_all() -> None:
    held = [Held(float(at), 1000 + 10 * at) for at in range(40)]
    assert growth(held) == 300
    assert slope(held) == pytest.approx(10)
    still = [Held(float(at), 1000 + (500 if at == 39 else 0)) for at in range(40)]
    assert growth(still) == 0
