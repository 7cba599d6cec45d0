"""What lies beneath is looked at: rows and keys that belong to nothing are found."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.testing.servers.redis import RedisServer

from .items import batch, items_of
from .model import MAIN, History
from .places import place_named
from .stored import check_file, check_redis, read_histories

ADVANCED = place_named("sqlite-advanced")
REDIS = place_named("redis")


async def write_two_branches(path: Path) -> History:
    async with ADVANCED.open(str(path), "s") as session:
        await session.add_items(items_of(batch("0.0", 1, 3)))
        await session.add_items(items_of(batch("0.0", 2, 1)))
        await session.create_branch_from_content("<0.0.2/0", "b3")
        await session.add_items(items_of(batch("0.0", 4, 2)))
    return (await read_histories(ADVANCED, str(path), ["s"]))["s"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def test_a_history_is_read_with_its_branches_and_all_of_it_fits_together(path: Path) -> None:
    found = asyncio.run(write_two_branches(path))
    one, two, four = (tuple(batch("0.0", call, size)) for call, size in ((1, 3), (2, 1), (4, 2)))
    assert found == History({MAIN: one + two, "b3": one + four}, current="b3")
    assert check_file(path, advanced=True, found={"s": found}) == []


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM agent_messages WHERE id = 2", "places without an item"),
        ("DELETE FROM message_structure WHERE message_id = 6", "items that no branch shows"),
        ("DELETE FROM recollect_agent_sessions_branches", "places in a branch that is not there"),
        ("DELETE FROM agent_sessions", "belong to no session"),
        ("INSERT INTO agent_sessions (session_id) VALUES ('t')", "a session t that nobody made"),
        ("UPDATE message_structure SET sequence_number = 1", "places whose order is not that of the items"),
        (
            "INSERT INTO message_structure (session_id, message_id, message_type, sequence_number)"
            " VALUES ('s', 4, 'user', 9)",
            "items shown twice in a branch",
        ),
        (
            "INSERT INTO recollect_agent_sessions_branches (session_id, branch_id, is_current)"
            " VALUES ('s', 'b9', 1)",
            "sessions with two current branches",
        ),
    ],
)
def test_what_does_not_fit_together_is_found(path: Path, harm: str, said: str) -> None:
    found = asyncio.run(write_two_branches(path))
    connection = sqlite3.connect(path)
    connection.execute(harm)
    connection.commit()
    connection.close()
    assert any(said in wrong for wrong in check_file(path, advanced=True, found={"s": found}))


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda command: command("PING"), None),
        (lambda command: command("DEL", "agents:session:s"), "belongs to no session"),
        (lambda command: command("RPOP", "agents:session:s:messages"), "has 2 entries"),
        (lambda command: command("SET", "agents:session:t", "1"), "nobody made"),
    ],
    ids=["no harm", "without a session", "an entry less", "a key more"],
)
def test_keys_that_do_not_fit_together_are_found(
    redis: RedisServer, harm: Callable[[Callable[..., Any]], Any], said: str | None
) -> None:
    async def write() -> dict[str, History]:
        async with REDIS.open(redis.url, "s") as session:
            await session.clear_session()
            await session.add_items(items_of(batch("0.0", 1, 3)))
        return await read_histories(REDIS, redis.url, ["s"])

    found = asyncio.run(write())
    harm(redis.command)
    wrong = check_redis(redis.command, found)
    assert wrong == [] if said is None else any(said in each for each in wrong)
