"""Databases that were damaged: single rows, and the bytes of the file."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect.errors import RecollectError
from recollect.items import decode_item
from recollect.sessions.advanced.sqlite import AdvancedSQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.protocol import Session
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.sessions.sqlite import SQLiteSession
from recollect.sql.sqlite.registry import close_all
from recollect.strategies.session import StrategySession
from recollect.strategies.values import Trim

from ..supply import Supply
from ..target import Check, check_told

_GOOD: list[Any] = [{"role": "user", "content": f"good {number}"} for number in range(4)]
_BROKEN = "UPDATE agent_messages SET message_data = ? WHERE id = (SELECT max(id) - ? FROM agent_messages)"
_Open = Callable[[str, Path], Session]


def _encrypted(session_id: str, path: Path) -> Session:
    return EncryptedSession(session_id, SQLiteSession(session_id, path, durability="normal"), "key")


def _shown(session_id: str, path: Path) -> Session:
    return StrategySession(SQLiteSession(session_id, path, durability="normal"), Trim(50))


def _on_sqlalchemy(session_id: str, path: Path) -> Session:
    return SQLAlchemySession.from_url(session_id, url=f"sqlite+aiosqlite:///{path}", create_tables=True)


SESSIONS: dict[str, _Open] = {
    "sqlite": lambda session_id, path: SQLiteSession(session_id, path, durability="normal"),
    "advanced": lambda session_id, path: AdvancedSQLiteSession(
        session_id=session_id, db_path=path, create_tables=True, durability="normal"
    ),
    "sqlalchemy": _on_sqlalchemy,
    "encrypted": _encrypted,
    "strategy": _shown,
}


# --- rows ---


@contextmanager
def open_rows() -> Iterator[Check]:
    """A row with anything in it never hides the others, and is gone when it is popped."""
    with asyncio.Runner() as runner, TemporaryDirectory(prefix="recollect-fuzzing-") as name:
        opened = [_Opened(kind, Path(name) / f"{kind}.db") for kind in SESSIONS]

        def check(data: bytes) -> None:
            supply = Supply(data)
            runner.run(supply.choose(opened).check(supply))

        yield check
        for each in opened:
            runner.run(each.aclose())


class _Opened:
    """A session, and a connection of one's own to what it stores."""

    def __init__(self, kind: str, path: Path) -> None:
        self._kind = kind
        self._path = path
        self._session: Any = SESSIONS[kind]("s", path)
        self._others: sqlite3.Connection | None = None

    async def check(self, supply: Supply) -> None:
        """Break one row of four."""
        await self._session.clear_session()
        await self._session.add_items(_GOOD)
        place, value = supply.number(4), _stored_value(supply)
        self._break(value, place)
        stays = _item_in(value)
        expected = [each for number, each in enumerate(_GOOD) if number != 3 - place]
        got = await self._session.get_items()
        hides = [each for each in got if each in _GOOD] != expected and stays not in _GOOD
        assert not hides, "a broken row hides others"
        assert len(got) <= len(_GOOD)
        assert len(await self._session.get_items(limit=2)) == 2, "a limit counts what cannot be read"
        await self._check_popping(len(got))

    async def _check_popping(self, count: int) -> None:
        try:
            popped = [each async for each in _popped(self._session)]
        except RecollectError:
            assert self._kind == "encrypted", "what cannot be read cannot be popped"
            return
        assert len(popped) == count
        assert await self._session.get_items() == []

    def _break(self, value: Any, place: int) -> None:
        if self._others is None:
            self._others = sqlite3.connect(self._path, isolation_level=None, timeout=60)
        self._others.execute(_BROKEN, (value, place))

    async def aclose(self) -> None:
        if self._others is not None:
            self._others.close()
        await self._session.aclose()


async def _popped(session: Any) -> AsyncIterator[Any]:
    while (item := await session.pop_item()) is not None:
        yield item


def _stored_value(supply: Supply) -> Any:
    match supply.number(4):
        case 0:
            return supply.rest()
        case 1:
            return supply.rest().decode("utf-8", "replace")
        case 2:
            return supply.choose((0, -1, 2**62, 0.5, 1e300))
    return bytes(supply.rest()) + b'{"role": "user"}'


def _item_in(value: Any) -> Any:
    return decode_item(value) if isinstance(value, bytes | str) else None


# --- files ---


def changed_file(original: bytes, supply: Supply) -> bytes:
    """A file with some bytes changed, or cut short."""
    changed = bytearray(original)
    for _ in range(1 + supply.number(8)):
        place = supply.number(1 << 16) % len(changed)
        match supply.number(4):
            case 0 | 1:
                changed[place] ^= supply.byte() or 0xFF
            case 2:
                patch = supply.take(supply.number(32))
                changed[place : place + len(patch)] = patch
            case _:
                # The head of a page, where most depends on each byte.
                changed[place // 512 * 512 + supply.number(12)] = supply.byte()
    return bytes(changed[: supply.number(1 << 16)]) if supply.byte() == 255 else bytes(changed)


@contextmanager
def open_files() -> Iterator[Check]:
    """A file with anything in any byte is read as far as it can be, or is an error that is ours."""
    with asyncio.Runner() as runner, TemporaryDirectory(prefix="recollect-fuzzing-") as name:
        folder = Path(name)
        written = {kind: runner.run(_written(kind, folder / kind)) for kind in ("sqlite", "advanced")}
        originals = list(written.items())
        place = folder / "damaged"

        def check(data: bytes) -> None:
            supply = Supply(data)
            kind, original = supply.choose(originals)
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            (place / "file.db").write_bytes(changed_file(original, supply))
            try:
                runner.run(_check_file(kind, place / "file.db"))
            finally:
                close_all()  # else the files stay open a while, and there would be hundreds

        yield check


async def _written(kind: str, path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    for session_id in ("s", "other"):
        session: Any = SESSIONS[kind](session_id, path)
        for _ in range(3):
            await session.add_items(_GOOD)
        await session.aclose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


@asynccontextmanager
async def _open(kind: str, path: Path) -> AsyncIterator[Any]:
    session: Any = SESSIONS[kind]("s", path)
    try:
        yield session
    finally:
        await session.aclose()


async def _check_file(kind: str, path: Path) -> None:
    """Whatever is done with the file, and whatever was answered to what was done before."""
    async with _open(kind, path) as session:
        for call in (
            session.get_items,
            lambda: session.get_items(limit=3),
            lambda: session.add_items(_GOOD[:1]),
            session.pop_item,
            lambda: session.replace_items(_GOOD[:2]),
            session.clear_session,
        ):
            try:
                await call()
            except RecollectError as error:
                check_told(error)
