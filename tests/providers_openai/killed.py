"""A turn in a process that kills itself before one of its statements."""

import asyncio
import os
import signal
from collections.abc import Callable
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from recollect.providers.openai.options import ChatOptions
from recollect.sql.scripts import Script
from recollect.sql.sqlalchemy.engine import SQLAlchemyEngine
from recollect.sql.sqlite.engine import FileEngine

from .chats import Place, open_chat

LEASE = 0.3  # seconds; a process that is killed keeps the conversation for so long
Write = Callable[..., Any]


def run_turn(told: Connection, url: str, conversation_id: str, turn_id: str, at: int) -> None:
    """Run a turn with the offline agent, and send how many statements its writes took.

    With `at`, the process is killed before the statement of this number, or before the commit after it.
    """
    numbers = count(1)

    def step() -> None:
        if next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    for kind in (FileEngine, SQLAlchemyEngine):
        kind.write = _stepping(kind.write, step)  # type: ignore[method-assign]
    asyncio.run(_say(url, conversation_id, turn_id))
    told.send(next(numbers) - 1)


def _stepping(write: Write, step: Callable[[], None]) -> Write:
    def stepped(script: Script[Any]) -> Script[Any]:
        statement = next(script)
        while True:
            step()
            rows = yield statement
            try:
                statement = script.send(rows)
            except StopIteration as ended:
                step()  # before the commit
                return ended.value

    async def wrapped(engine: Any, make_script: Callable[[], Script[Any]]) -> Any:
        return await write(engine, lambda: stepped(make_script()))

    return wrapped


async def _say(url: str, conversation_id: str, turn_id: str) -> None:
    async with open_chat(Place(url), options=ChatOptions(lease_seconds=LEASE)) as chat:
        found = await chat.store.get_conversation(conversation_id)
        assert found is not None
        chat.conversation = found
        await chat.say("Is anybody there?", turn_id)
