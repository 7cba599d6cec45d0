"""The savers that are compared, each on a database of its own, and the steps that they store."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from recollect.integrations.langgraph import Checkpointer
from recollect.testing.servers.postgres import PostgresServer

OURS, OFFICIAL = "recollect", "AsyncSqliteSaver"
OURS_POSTGRES, OFFICIAL_POSTGRES = "recollect PostgreSQL", "AsyncPostgresSaver"
CONTENDERS = (OURS, OFFICIAL, OURS_POSTGRES, OFFICIAL_POSTGRES)

_WORDS = re.findall(
    r"\w+", "the order left the warehouse on monday and should arrive by thursday at the latest"
)


@asynccontextmanager
async def opened(directory: Path, names: tuple[str, ...] = CONTENDERS) -> AsyncIterator[dict[str, Any]]:
    """The savers of these names, on new databases."""
    folder = directory / uuid4().hex
    folder.mkdir()
    with PostgresServer() as server:
        async with (
            Checkpointer(folder / "ours.db") as ours,
            AsyncSqliteSaver.from_conn_string(str(folder / "official.db")) as official,
            Checkpointer(server.url, create_tables=True) as ours_postgres,
            AsyncPostgresSaver.from_conn_string(server.url) as official_postgres,
        ):
            await official.setup()
            await official_postgres.setup()
            savers = dict(zip(CONTENDERS, (ours, official, ours_postgres, official_postgres), strict=True))
            yield {name: savers[name] for name in names}


def talk(count: int, start: int = 0) -> list[AnyMessage]:
    """Messages of about 300 characters, each different."""
    return [_message(number) for number in range(start, start + count)]


def _message(number: int) -> AnyMessage:
    words = [f"{_WORDS[(number * 7 + place) % len(_WORDS)]}" for place in range(45)]
    kind = HumanMessage if number % 2 else AIMessage
    return kind(content=f"{number} {' '.join(words)} {number * 7919}", id=f"message-{number}")


class Thread:
    """A thread of one saver that grows by two messages with each step."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self.saver = saver
        self.messages: list[AnyMessage] = []
        self.config: Any = {"configurable": {"thread_id": uuid4().hex, "checkpoint_ns": ""}}
        self._version: Any = None
        self._step = 0

    async def begin(self, messages: list[AnyMessage]) -> None:
        """Store the first checkpoint, with these messages."""
        await self._put(messages)

    def next(self) -> tuple[Any, Any]:
        """The calls of the next step: what the task wrote, and the checkpoint after it."""
        new = talk(2, len(self.messages))
        task = str(uuid4())
        writes = self.saver.aput_writes(
            self.config, [("messages", new), ("branch:to:model", None)], task, "~__pregel_pull, model"
        )
        return writes, self._put(self.messages + new)

    async def _put(self, messages: list[AnyMessage]) -> None:
        self.messages = messages
        self._version = self.saver.get_next_version(self._version, None)
        self._step += 1
        versions = {"messages": self._version, "branch:to:model": self._version}
        checkpoint: Any = {
            "v": 4,
            "id": str(uuid6(clock_seq=self._step)),
            "ts": "2026-11-17T10:00:00.000000+00:00",
            "channel_values": {"messages": messages},
            "channel_versions": {**versions, "__start__": "00000000000000000000000000000002.0.5"},
            "versions_seen": {"model": {"branch:to:model": self._version}, "__input__": {}},
            "updated_channels": ["branch:to:model", "messages"],
        }
        metadata: Any = {"source": "loop", "step": self._step, "parents": {}}
        self.config = await self.saver.aput(self.config, checkpoint, metadata, versions)
