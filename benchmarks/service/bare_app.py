"""The limits of what we stand on: FastAPI on uvicorn, which reads a body and answers, or stores it first.

With a database as its argument it stores each conversation and its messages durably: `sqlite3` on one
connection and a thread, or asyncpg with a pool. It checks no key, and learns and audits nothing.

It watches its event loop as the service does: what the machine itself adds to that is seen here.
"""

import asyncio
import socket
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Any

import asyncpg
import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from recollect.server.telemetry.metrics import Metrics

_metrics = Metrics()


@asynccontextmanager
async def _watching(app: FastAPI) -> AsyncIterator[None]:
    watch = asyncio.create_task(_metrics.watch_loop())
    async with storing(sys.argv[1] if len(sys.argv) > 1 else None) as app.state.store:
        yield
    watch.cancel()


app = FastAPI(lifespan=_watching)


class Message(BaseModel):
    """A message."""

    role: str
    content: str


class NewConversation(BaseModel):
    """The body that is read."""

    agent_id: str
    user_id: str
    messages: list[Message]


@app.post("/v1/conversations", status_code=201)
async def create(body: NewConversation, request: Request) -> dict[str, Any]:
    """Keeps nothing, or one conversation."""
    conversation_id = str(uuid.uuid4())
    await request.app.state.store(
        (conversation_id, body.agent_id, body.user_id),
        [(conversation_id, place, each.role, each.content) for place, each in enumerate(body.messages)],
    )
    return {"success": True, "message_count": len(body.messages)}


# --- storing ---

_TABLES = (
    "CREATE TABLE conversations (conversation_id VARCHAR PRIMARY KEY, agent_id VARCHAR, user_id VARCHAR)",
    "CREATE TABLE messages (conversation_id VARCHAR, place INTEGER, role VARCHAR, content VARCHAR,"
    " PRIMARY KEY (conversation_id, place))",
)
_ADD = "INSERT INTO conversations VALUES ($1, $2, $3)"
_ADD_MESSAGE = "INSERT INTO messages VALUES ($1, $2, $3, $4)"
_Store = Callable[[tuple[Any, ...], list[tuple[Any, ...]]], Awaitable[None]]


@asynccontextmanager
async def storing(place: str | None) -> AsyncIterator[_Store]:
    """What stores a conversation and its messages in a database, durably; without one, nothing is stored."""
    if place is None:
        yield _forget
    elif place.startswith("postgresql"):
        async with asyncpg.create_pool(place, min_size=10, max_size=10) as pool:
            for table in _TABLES:
                await pool.execute(table)
            yield partial(_store_in_postgres, pool)
    else:
        with closing(_file(place)) as connection:
            yield partial(_store_in_file, connection, asyncio.Lock())


async def _forget(_: tuple[Any, ...], __: list[tuple[Any, ...]]) -> None:
    return


async def _store_in_postgres(
    pool: Any, conversation: tuple[Any, ...], messages: list[tuple[Any, ...]]
) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(_ADD, *conversation)
        await connection.executemany(_ADD_MESSAGE, messages)


def _file(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", *_TABLES):
        connection.execute(statement)
    return connection


async def _store_in_file(
    connection: sqlite3.Connection,
    lock: asyncio.Lock,
    conversation: tuple[Any, ...],
    messages: list[tuple[Any, ...]],
) -> None:
    def store() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_ADD.replace("$", "?"), conversation)
        connection.executemany(_ADD_MESSAGE.replace("$", "?"), messages)
        connection.execute("COMMIT")

    async with lock:
        await asyncio.to_thread(store)


@app.get("/metrics")
async def metrics() -> Response:
    """How late the event loop was."""
    return Response(_metrics.render())


def main() -> None:
    """Serve until a signal comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # who reads the next line may connect at once
        print(f"bare app listens on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="warning")
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
