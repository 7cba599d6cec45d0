"""The cost of one chat turn: `python -m benchmarks.service.turn_cost [--postgres] [--verbose]`.

Counts the second turn of a conversation over HTTP with the offline agent, learning excluded: the distinct
functions of Recollect that run, the transactions that write, and the statements that the database gets.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx2

import recollect
from recollect.sql.scripts import Script, Statement
from recollect.sql.sqlalchemy.engine import SQLAlchemyEngine
from recollect.sql.sqlite.engine import FileEngine

_SOURCE = str(Path(recollect.__file__).parent)
_WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")
_SETTINGS = {"memory": {"workers": 0, "embedder": "none"}}


@dataclass
class Cost:
    """What a turn costs."""

    functions: set[CodeType] = field(default_factory=set)
    transactions: list[list[str]] = field(default_factory=list)
    """The statements of each transaction that `write` runs, in order."""
    reads: list[str] = field(default_factory=list)

    @property
    def modules(self) -> int:
        """The modules of the functions."""
        return len({code.co_filename for code in self.functions})

    @property
    def writes(self) -> list[list[str]]:
        """The transactions that change something."""
        return [each for each in self.transactions if any(sql.lstrip().startswith(_WRITES) for sql in each)]

    @property
    def statements(self) -> int:
        """The statements that a server gets, with BEGIN and COMMIT."""
        return len(self.reads) + sum(len(each) + 2 * (len(each) > 1) for each in self.transactions)


async def measure_turn(url: str, **settings: Any) -> Cost:
    """The cost of the second turn of a conversation, with a service in this process."""
    async with _serving(url, settings) as client:
        first = await _say(client, {"user_id": "ada", "message": "I live in Lisbon."})
        again = {"user_id": "ada", "conversation_id": first["conversation_id"], "message": "Where do I live?"}
        cost = Cost()
        with _recorded_statements(cost), _recorded_functions(cost):
            await _say(client, again)
        return cost


async def _say(client: httpx2.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/chat", json=body)
    answer.raise_for_status()
    reply: dict[str, Any] = answer.json()
    return reply


@asynccontextmanager
async def _serving(url: str, settings: dict[str, Any]) -> AsyncIterator[httpx2.AsyncClient]:
    from recollect.server.app import create_app
    from recollect.server.settings import Settings

    app = create_app(Settings.model_validate(_SETTINGS | {"database": {"url": url, **settings}}))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1", timeout=300
        ) as client,
    ):
        yield client


@contextmanager
def _recorded_statements(cost: Cost) -> Iterator[None]:
    """Note each statement of the engines. A script that runs again is one transaction."""

    def recorded(script: Script[Any], statements: list[str]) -> Script[Any]:
        statement = next(script)
        try:
            while True:
                statements.append(statement.sql)
                statement = script.send((yield Statement(*statement)))
        except StopIteration as ended:
            return ended.value

    def record_writes(write: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(engine: Any, make_script: Callable[[], Script[Any]]) -> Any:
            statements: list[str] = []
            cost.transactions.append(statements)

            def make() -> Script[Any]:
                statements.clear()
                return recorded(make_script(), statements)

            return await write(engine, make)

        return wrapped

    async def fetch(engine: SQLAlchemyEngine, sql: str, *rest: Any) -> Any:
        cost.reads.append(sql)
        return await fetch_of_server(engine, sql, *rest)

    fetch_of_server = SQLAlchemyEngine.fetch
    before = [(kind, kind.write) for kind in (FileEngine, SQLAlchemyEngine)]
    for kind, write in before:
        kind.write = record_writes(write)  # type: ignore[method-assign]
    SQLAlchemyEngine.fetch = fetch  # type: ignore[method-assign]
    try:
        yield
    finally:
        for kind, write in before:
            kind.write = write  # type: ignore[method-assign]
        SQLAlchemyEngine.fetch = fetch_of_server  # type: ignore[method-assign]


@contextmanager
def _recorded_functions(cost: Cost) -> Iterator[None]:
    """Note each function of Recollect that is called, also in new threads."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_named = not code.co_name.startswith("<")  # else a comprehension or a lambda
        if event == "call" and is_named and code.co_filename.startswith(_SOURCE):
            cost.functions.add(code)

    sys.setprofile(note)
    threading.setprofile(note)  # of threads that start now: the pools have none yet
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _print(cost: Cost, is_verbose: bool) -> None:
    print(f"functions {len(cost.functions)} in {cost.modules} modules")
    print(f"write transactions {len(cost.writes)}, statements {cost.statements}")
    if is_verbose:
        for number, statements in enumerate(cost.transactions, 1):
            print(f"--- transaction {number}")
            print("\n".join(" ".join(sql.split())[:150] for sql in statements))
        print("--- reads")
        print("\n".join(" ".join(sql.split())[:150] for sql in cost.reads))
        names = Counter(code.co_filename.removeprefix(_SOURCE) for code in cost.functions)
        print("\n".join(f"{count:5} {name}" for name, count in names.most_common()))


def main() -> None:
    """Print the cost of a turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL of its own")
    parser.add_argument("--verbose", action="store_true", help="every statement, and the modules")
    given = parser.parse_args()
    if given.postgres:
        from recollect.testing.servers.postgres import PostgresServer

        with PostgresServer() as server:
            _print(asyncio.run(measure_turn(server.url, create_tables=True)), given.verbose)
        return
    with tempfile.TemporaryDirectory() as folder:
        _print(asyncio.run(measure_turn(str(Path(folder) / "turn.db"))), given.verbose)


if __name__ == "__main__":
    main()
