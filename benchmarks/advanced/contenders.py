"""Who is compared: ours, the SDK's, and our plain session on the same history."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from ..sessions.histories import Workspace
from ..shared.items import SESSION
from ..shared.stores import check_read

OURS = "recollect"
SDK = "SDK AdvancedSQLiteSession"
PLAIN = "recollect, plain"
BASELINES = (PLAIN, SDK)
EVERYBODY = (OURS, SDK, PLAIN)
ADVANCED = (OURS, SDK)


def make_session(contender: str, path: Path) -> Any:
    """A session of a contender, as an application makes it for a request."""
    if contender == OURS:
        from recollect import AdvancedSQLiteSession

        return AdvancedSQLiteSession(session_id=SESSION, db_path=path)
    if contender == SDK:
        from agents.extensions.memory import AdvancedSQLiteSession as Theirs

        return Theirs(session_id=SESSION, db_path=path, create_tables=True)
    from recollect import SQLiteSession

    return SQLiteSession(SESSION, path)


async def give_structure(path: Path) -> None:
    """Let a file of plain items become one of an advanced session, which the SDK reads as well."""
    session = make_session(OURS, path)
    await session.list_branches()
    session.close()


@asynccontextmanager
async def on_histories(
    workspace: Workspace, contenders: tuple[str, ...], size: int
) -> AsyncIterator[Mapping[str, Any]]:
    """An open session for each contender, on a file of its own with so many items."""
    async with AsyncExitStack() as stack:
        sessions = {}
        for contender in contenders:
            path = workspace.copy_of({SESSION: size})
            if contender != PLAIN:
                await give_structure(path)
            session = sessions[contender] = make_session(contender, path)
            stack.callback(session.close)
            check_read(contender, await session.get_items(), size)
        yield sessions
