"""The checks find what they are there for: rows of a real database, and the same with something wrong."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from recollect.memory.store import MemoryStore

from .checks import check
from .found import Found
from .journal import Life, read_journal
from .models import embedder_of
from .orders import Order, write_order
from .places import Place, Rows

_OPERATIONS = 80
_ROOT = Path(__file__).parents[3]
_CLIENT = """
import asyncio, sys
from tests.faults.memory.client import carry_out
from tests.faults.memory.orders import read_order
asyncio.run(carry_out(read_order(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Life]:
    """What is stored after a client has done its work, and what it has told of that."""
    place = Place("sqlite", tmp_path_factory.mktemp("checks"))
    place.new_database()
    order = Order(place.url, str(place.folder / "client"), 7, operations=_OPERATIONS, tasks=2)
    # In a process of its own, as what is left open is counted: services of other tests live in this one.
    subprocess.run([sys.executable, "-c", _CLIENT, write_order(order)], cwd=_ROOT, check=True)
    asyncio.run(_learn(place.url))
    return place.rows(), read_journal(place.folder / "client")


async def _learn(url: str) -> None:
    async with MemoryStore(url, embedder=embedder_of("", "")) as store:
        await asyncio.sleep(0.4)  # the quiet that conversations wait for
        await store.drain(60)


def findings(rows: Rows, life: Life) -> list[str]:
    return list(check(Found(rows), [life]))


def test_what_was_done_without_faults_is_as_it_must_be(done: tuple[Rows, Life]) -> None:
    rows, life = done
    assert (life.wrong, life.left) == ([], [])
    assert life.counts.total() == _OPERATIONS
    assert findings(rows, life) == []


def _without(table: str) -> Callable[[Rows], None]:
    return lambda rows: rows[table].remove(rows[table][-1])


def _with(table: str, **changed: object) -> Callable[[Rows], None]:
    return lambda rows: rows[table][-1].update(changed)


def _lose_stage(rows: Rows) -> None:
    """Of a run over what all clients share: nobody has anything of that erased."""
    shared = {run["run_id"] for run in rows["memory_runs"] if run["conversation_id"].startswith("shared")}
    rows["memory_run_stages"].remove(
        next(stage for stage in rows["memory_run_stages"] if stage["run_id"] in shared)
    )


WRONG: dict[str, Callable[[Rows], None]] = {
    "a message that is lost": _without("conversation_messages"),
    "a message of other words": _with("conversation_messages", content="I bought a zqbbb"),
    "a message in another place": _with("conversation_messages", message_index=77),
    "a conversation that is lost": _without("conversations"),
    "an entry that is lost": _without("memory_contents"),
    "an entry that is told no more": _with("memory_contents", retired_at="2026-11-16"),
    "a message that was not learned": _without("memory_evidence"),
    "a message that was learned twice": lambda rows: rows["memory_evidence"].append(
        {**rows["memory_evidence"][-1], "content_id": rows["memory_contents"][0]["content_id"]}
    ),
    "evidence of nothing": _with("memory_evidence", message_id="message of nobody"),
    "a run that is lost": _without("memory_runs"),
    "a run that is not done": _with("memory_runs", status="running"),
    "a stage that is lost": _lose_stage,
    "an index row of nothing": _with("memory_terms", position=9_999),
    "a row in the queue": lambda rows: rows["memory_queue"].append({"memory_id": "somebody"}),
    "a conversation that waits": _with("conversations", learn_at=1.0),
    "a vector that is missing": _with("conversation_messages", content_vector=None),
    "a vector of another model": _with("memory_contents", vector_model="another"),
    "words that were erased": _with("memory_run_stages", result="I bought a zqbbb"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_whatever_is_wrong_is_found(done: tuple[Rows, Life], wrong: Callable[[Rows], None]) -> None:
    rows, life = deepcopy(done)
    wrong(rows)
    assert findings(rows, life)
