"""A database as it is seen past the sessions under test."""

import asyncio
import itertools
import os
import re
from typing import Any

import psycopg

_numbers = itertools.count()
_ONLOOKER = "recollect-onlooker"


def sql(url: str, text: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own."""
    with psycopg.connect(url, autocommit=True, application_name=_ONLOOKER) as connection:
        cursor = connection.execute(text, parameters or None)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


async def until_somebody_waits(url: str, task: "asyncio.Task[Any] | None" = None) -> None:
    """Until somebody waits for a row that another has, or a task has ended without."""
    here = "datname = current_database()"
    waiting = f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {here}"
    async with asyncio.timeout(20):
        while sql(url, waiting) == [(0,)] and not (task and task.done()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def by(driver: str, url: str) -> str:
    """The URL for a driver of SQLAlchemy."""
    return url.replace("postgresql://", f"postgresql+{driver}://")


def new_tables() -> dict[str, str]:
    """Names that nobody has used: the options for a session with tables of its own."""
    number = f"{os.getpid()}_{next(_numbers)}"
    return {"sessions_table": f"sessions_{number}", "messages_table": f"messages_{number}"}


def as_user(user: str, url: str) -> str:
    """The URL for another user."""
    return re.sub(r"//[^@]*@", f"//{user}@", url)


def count_connections(url: str) -> int:
    """How many connections the server has to the database of the URL, those of `sql` aside.

    On a busy machine the server ends a closed connection late: the one of an earlier look must not count.
    """
    counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    others = f"application_name <> '{_ONLOOKER}' AND backend_type = 'client backend'"
    ((number,),) = sql(url, f"{counted} AND {others}")
    return int(number)
