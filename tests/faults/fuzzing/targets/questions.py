"""What is looked for in databases: any text is a question, and never a piece of SQL."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect.memory.store import MemoryStore
from recollect.sessions.manager import open_session

from ..supply import Supply
from ..target import Check, check_told

POSTGRES = "RECOLLECT_TEST_FUZZING_POSTGRES"
"""The variable that names the PostgreSQL."""
_AGENT, _USER = "agent", "user"
_SAID = ("I live in Lisbon, and I love 100% rain_", "我住在北京", 'it\'s "quoted" & | ! ( ) : * <->')
_MOST = 3


class _Asked:
    """A store and a session on one database, with something to be found."""

    def __init__(self, url: str) -> None:
        self._url = url
        options: dict[str, Any] = {} if url == ":memory:" else {"create_tables": True}
        self._store = MemoryStore(url, embedder=None, workers=0, **options)
        self._session: Any = open_session(url, f"fuzzed {os.getpid()}", advanced=True, create_tables=True)
        self._user = f"{_USER} {os.getpid()}"

    async def fill(self) -> None:
        """Say something that can be found."""
        messages = [{"role": "user", "content": text} for text in _SAID]
        await self._store.record_conversation(_AGENT, self._user, messages)
        for text in _SAID:
            await self._store.add_entry(_AGENT, self._user, "profile", text)
        await self._session.add_items(messages)

    async def check(self, supply: Supply) -> None:
        """Ask for any text, in each way that there is to ask."""
        way = supply.number(5)
        text = supply.rest().decode("utf-8", "surrogateescape")
        try:
            found = await self._found(way, text)
        except (ValueError, TypeError) as error:
            check_told(error)
            assert not text.strip() or way > 2, "search refuses a text"
            return
        assert len(found) <= _MOST, "more is found than there is"

    async def _found(self, way: int, text: str) -> Any:
        match way:
            case 0:
                return (await self._store.search_memories(text, _AGENT, self._user, limit=_MOST)).hits
            case 1:
                return (await self._store.search_conversations(text, _AGENT, self._user, limit=_MOST)).hits
            case 2:
                return (await self._store.recall(text, _AGENT, self._user)).turns
            case 3:
                return await self._session.find_turns_by_content(text)
        return await self._store.list_memories(text or None, self._user)

    async def aclose(self) -> None:
        """Let go of the database."""
        await self._store.aclose()
        await self._session.aclose()


@contextmanager
def open_questions() -> Iterator[Check]:
    """Any text is a question on SQLite."""
    with _open(":memory:") as check:
        yield check


@contextmanager
def open_questions_on_postgres() -> Iterator[Check]:
    """Any text is a question on PostgreSQL."""
    with _open(os.environ[POSTGRES]) as check:
        yield check


@contextmanager
def _open(url: str) -> Iterator[Check]:
    with asyncio.Runner() as runner:
        asked = _Asked(url)
        runner.run(asked.fill())
        yield lambda data: runner.run(asked.check(Supply(data)))
        runner.run(asked.aclose())
