"""A session with a strategy satisfies the contract; all of it if its limits are never reached."""

from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AppendsOnce,
    Described,
    InMemorySession,
    Leasable,
    Noted,
    Positioned,
    Rewritable,
    Session,
    SQLiteSession,
)
from recollect.sessions.advanced.sqlite import AdvancedSQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.strategies.session import StrategySession
from recollect.strategies.values import Compact, Summarize, Trim
from recollect.testing import SessionContract

from .sessions import PlainSession

MANY = 10**6
ALL_ABILITIES = (Rewritable, Positioned, AppendsOnce, Described, Leasable, Noted)


class OnFile(SessionContract):
    abilities: tuple[type, ...] = ALL_ABILITIES
    strategy: Any = None

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    def open_inner(self, session_id: str) -> Any:
        return SQLiteSession(session_id, self.path)

    async def open_session(self, session_id: str) -> Session:
        return StrategySession(self.open_inner(session_id), self.strategy)


@pytest.mark.proof
class TestNoStrategy(OnFile):
    strategy = None


class TestTrim(OnFile):
    strategy = Trim(MANY, 1, token_budget=MANY)


class TestSummarize(OnFile):
    strategy = Summarize(MANY, 1, token_budget=MANY)


class TestCompact(OnFile):
    """Its limits are always reached, but messages are not compacted."""

    strategy = Compact(1, 1, clear_tool_inputs=True, exclude_tools=["f"])


class TestOverEncrypted(OnFile):
    strategy = Trim(MANY)

    def open_inner(self, session_id: str) -> Any:
        return EncryptedSession(session_id, SQLiteSession(session_id, self.path), "secret")


class TestOverAdvanced(OnFile):
    strategy = Summarize(MANY)

    def open_inner(self, session_id: str) -> Any:
        return AdvancedSQLiteSession(session_id=session_id, db_path=self.path)


class TestInMemory(SessionContract):
    shared = False
    abilities = ALL_ABILITIES

    async def open_session(self, session_id: str) -> Session:
        return StrategySession(InMemorySession(session_id), Trim(MANY))


class TestOverTheContractAlone(SessionContract):
    shared = False

    async def open_session(self, session_id: str) -> Session:
        return StrategySession(PlainSession(session_id), Trim(MANY))
