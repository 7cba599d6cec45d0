"""Many chat streams at once: whether every event arrives, and how long that takes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind
from .client import Answer, Connection
from .contenders import OURS, TWO, OpenTarget, provider_settings, service
from .provider_process import ANSWER
from .requests import chat

_METRICS = (
    Metric("whole streams", "", more_is_better=True, has_ratio=False),
    Metric("broken streams", "", has_ratio=False),
    Metric("open at once", "", more_is_better=True, has_ratio=False),
    Metric("until all are done"),
    Metric("until the first event, p50"),
    Metric("processor for each"),
    Metric("longest block"),
)


def stream(databases: Databases, kind: Kind, folder: Path, number: int, repeats: int) -> Measure:
    """Hold so many chat streams at once."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make, provider_settings(folder) as settings:
            opening = {OURS: service(make, folder, settings=settings)}
            if kind == "postgres":
                opening[TWO] = service(make, folder, instances=2, settings=settings)
            yield {name: partial(_sample, open_target, number) for name, open_target in opening.items()}

    what = f"{number} chat streams at once, with a provider that answers at once"
    return Measure(f"streams-{kind}", what, _METRICS, repeats, open_all, (OURS,), warm_up=False)


async def _sample(open_target: OpenTarget, number: int) -> Sample:
    async with open_target() as target:
        ports = [server.port for server in target.servers]
        await _all_at_once(ports, len(ports))  # the first turn imports what all need
        worked = target.processor_seconds()
        read = await _all_at_once(ports, number)
        worked = target.processor_seconds() - worked
        whole = sum(is_whole(events_of(each.answer), ANSWER) for each in read)
        waits = sorted(each.answer.began_at - each.sent_at for each in read)
        return {
            "whole streams": float(whole),
            "broken streams": float(number - whole),
            "open at once": float(most_at_once(read)),
            "until all are done": max(each.ended_at for each in read) - min(each.sent_at for each in read),
            "until the first event, p50": waits[len(waits) // 2],
            "processor for each": worked / number,
            "longest block": await target.longest_block(),
        }


@dataclass(frozen=True)
class Read:
    """A stream that was read to its end."""

    answer: Answer
    sent_at: float
    ended_at: float


async def _all_at_once(ports: Sequence[int], number: int) -> list[Read]:
    opened = [await Connection.open(ports[place % len(ports)]) for place in range(number)]
    try:
        asked = (_read(connection, f"talker-{place}") for place, connection in enumerate(opened))
        return await asyncio.gather(*asked)
    finally:
        for connection in opened:
            connection.close()


async def _read(connection: Connection, user: str) -> Read:
    sent_at = perf_counter()
    answer = await connection.ask(chat(user, "Tell me something that takes a while."))
    return Read(answer, sent_at, perf_counter())


# --- what came ---


def events_of(answer: Answer) -> list[tuple[str, Any]]:
    """The names and values of server-sent events; comments, which keep a connection open, are left out."""
    blocks = answer.body.decode().split("\n\n")
    return [event for block in blocks for event in _event_in(block.splitlines())]


def _event_in(lines: Sequence[str]) -> Iterator[tuple[str, Any]]:
    fields = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(":"))
    if "event" in fields:
        yield fields["event"], json.loads(fields["data"])


def is_whole(events: Sequence[tuple[str, Any]], text: str) -> bool:
    """Whether a stream began, told all of a text in its order, and was completed with it."""
    names = [name for name, _ in events]
    deltas = "".join(value["text"] for name, value in events if name == "text.delta")
    return (
        names[:1] == ["turn.started"]
        and names[-1:] == ["turn.completed"]
        and deltas == text
        and events[-1][1]["text"] == text
    )


def most_at_once(read: Sequence[Read]) -> int:
    """How many streams were open at the same time: begun, and not at their end."""
    changes = [(each.answer.began_at, 1) for each in read] + [(each.ended_at, -1) for each in read]
    open_now = most = 0
    for _, change in sorted(changes):
        open_now += change
        most = max(most, open_now)
    return most
