"""Notifications of PostgreSQL (`LISTEN`), on a connection of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from .connections import Connections
from .errors import explain, explained

_PING_SECONDS = 30.0  # a connection that a firewall dropped is noticed by a statement only


@asynccontextmanager
async def listen(
    connections: Connections, channel: str, on_notice: Callable[[], None]
) -> AsyncIterator[asyncio.Event]:
    """Call a function at each notification in a channel. The event is set when the connection is lost.

    `channel` is an identifier. The connection is not one of the pool: a pool of one serves others, too.
    """
    lost = asyncio.Event()
    async with connections.detached() as driver:
        open_listener = _by_asyncpg if connections.engine.dialect.driver == "asyncpg" else _by_psycopg
        async with open_listener(driver, channel, on_notice, lost):
            yield lost


@asynccontextmanager
async def _by_asyncpg(
    driver: Any, channel: str, on_notice: Callable[[], None], lost: asyncio.Event
) -> AsyncIterator[None]:
    driver.add_termination_listener(lambda _: lost.set())
    with explained("notifications", explain):
        await driver.add_listener(channel, lambda *_: on_notice())
    pinging = asyncio.create_task(_ping(driver, lost))
    try:
        yield
    finally:
        pinging.cancel()


async def _ping(driver: Any, lost: asyncio.Event) -> None:
    try:
        while True:
            await asyncio.sleep(_PING_SECONDS)
            await driver.execute("SELECT 1", timeout=_PING_SECONDS)
    except Exception:  # noqa: BLE001 - whatever the error is, nothing more will be heard here
        lost.set()


@asynccontextmanager
async def _by_psycopg(
    driver: Any, channel: str, on_notice: Callable[[], None], lost: asyncio.Event
) -> AsyncIterator[None]:
    with explained("notifications", explain):
        await driver.execute(f"LISTEN {channel}")
    hearing = asyncio.create_task(_hear(driver, on_notice, lost))
    try:
        yield
    finally:
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing


async def _hear(driver: Any, on_notice: Callable[[], None], lost: asyncio.Event) -> None:
    try:
        while True:
            async for _ in driver.notifies(timeout=_PING_SECONDS):
                on_notice()
            await driver.execute("SELECT 1")
    except Exception:  # noqa: BLE001 - whatever the error is, nothing more will be heard here
        lost.set()
