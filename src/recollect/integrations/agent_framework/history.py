"""The history of sessions of the Microsoft Agent Framework."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import HistoryProvider, Message
from typing_extensions import override

from ..framework import FrameworkSessions
from .messages import AGENT_FRAMEWORK, message_of, record_of, without_replay

_NO_SESSION = "default"


class SessionHistory(HistoryProvider):
    """The messages of the sessions of one user, exactly.

    `options` are those of `FrameworkSessions`, such as `memory` and `encryption_key`; the arguments from
    `source_id` to `store_outputs` are those of `HistoryProvider`. With `skip_excluded`, messages
    that a compaction has excluded are stored and not loaded.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str = "agent-framework",
        source_id: str = "recollect_history",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        self._sessions = FrameworkSessions(
            AGENT_FRAMEWORK, url_or_path, agent_id=agent_id, user_id=user_id, **options
        )

    @override
    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, the oldest first."""
        async with self._sessions.open(session_id or _NO_SESSION) as log:
            found = [message_of(record) for record in await log.load()]
        if self.skip_excluded:
            return [each for each in found if not each.additional_properties.get("_excluded")]
        return found

    @override
    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append the messages that are new, all or none. Messages of the history are not stored again."""
        given = [record_of(message) for message in messages]
        if given:
            async with self._sessions.open(session_id or _NO_SESSION) as log:
                await log.change(lambda stored: [*stored, *without_replay(stored, given)])

    async def list_sessions(self) -> list[str]:
        """The ids of the stored sessions, the latest used first."""
        return [stored.key[0] for stored in await self._sessions.list()]

    async def delete_session(self, session_id: str) -> None:
        """Erase a session, and with a memory what was recorded and learned from it."""
        async with self._sessions.open(session_id) as log:
            await log.erase()

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()
