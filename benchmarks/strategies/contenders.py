"""Who is compared: a session under each strategy, without one, and the design that rewrites everything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.sessions.sqlite import SQLiteSession
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import SummaryRequest
from recollect.strategies.values import Compact, Summarize, Trim
from recollect.strategies.views import view_of

from ..shared.items import SESSION
from .sdk_compaction import SDKCompactingSession

Item = dict[str, Any]

PLAIN = "plain"
TRIM = "trim"
TRIM_BY_TOKENS = "trim by tokens"
SUMMARIZE = "summarize"
COMPACT = "compact"
REWRITE = "rewrite everything"
SDK_COMPACTION = "SDK compaction"

TURNS, KEPT = 20, 10
STRATEGIES = {
    TRIM: Trim(TURNS, KEPT),
    TRIM_BY_TOKENS: Trim(token_budget=3000, keep_last_user_turns=KEPT),
    SUMMARIZE: Summarize(TURNS, KEPT),
    COMPACT: Compact(TURNS, KEPT),
}


async def summarize(request: SummaryRequest) -> str:
    """A summary at no cost: what is measured is what is around it."""
    return f"A summary of {len(request.items)} items. " + "Parcels were late, and then they were not. " * 20


class RewritingSession:
    """The design to compare with: each turn reads the history, clears it, and writes the view instead."""

    def __init__(self, path: Path) -> None:
        self._session = SQLiteSession(SESSION, path)

    async def get_items(self) -> list[Item]:
        """Rewrite the session, and return it."""
        view = view_of(await self._session.get_items(), STRATEGIES[COMPACT])
        await self._session.clear_session()
        await self._session.add_items(view)
        return view

    async def add_items(self, items: list[Item]) -> None:
        """Append."""
        await self._session.add_items(items)

    async def aclose(self) -> None:
        """Close the file."""
        self._session.close()


def _under(name: str) -> Callable[[Path], Any]:
    return lambda path: StrategySession(SQLiteSession(SESSION, path), STRATEGIES[name], summarizer=summarize)


CONTENDERS: dict[str, Callable[[Path], Any]] = {
    PLAIN: lambda path: SQLiteSession(SESSION, path),
    **{name: _under(name) for name in STRATEGIES},
    REWRITE: RewritingSession,
    SDK_COMPACTION: SDKCompactingSession,
}
