"""The sessions of Strands: agents with their state, and their messages.

The messages of an agent are one log. What is replaced as a whole, such as the state of an agent, is the only
record of another one.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage
from typing_extensions import override

from ...items import text_of
from ...items.originals import Original
from ..blocking import run_blocking
from ..framework import FrameworkSessions
from .messages import MESSAGE, STRANDS, items_of

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

_SESSION, _AGENT, _MESSAGES, _MULTI_AGENT = "session", "agent", "messages", "multi-agent"
_STATE = "state"  # the field of a record that is replaced as a whole


class Repository(SessionRepository):  # type: ignore[misc] # the package is in an environment of its own
    """The sessions of one user, exactly. For the options see `FrameworkSessions`.

    If two processes create messages under the same number, both are kept, in the order in which they came.
    The text of a redacted message is erased, also from the memory.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str = "strands",
        **options: Any,
    ) -> None:
        self._sessions = FrameworkSessions(
            STRANDS, url_or_path, agent_id=agent_id, user_id=user_id, **options
        )

    @override
    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Create a session. Raises `SessionException` if there is one with this id."""
        known = f"Session {session.session_id} already exists"
        run_blocking(self._replace(False, known, session.to_dict(), session.session_id, _SESSION))
        return session

    @override
    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """The session; `None` if it does not exist."""
        found = run_blocking(self._read(session_id, _SESSION))
        return None if found is None else Session.from_dict(found)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:  # noqa: ARG002
        """Erase a session, its agents and messages, and what was recorded and learned from them."""
        run_blocking(self._delete(session_id))

    @override
    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Create an agent, or replace it."""
        state = session_agent.to_dict()
        run_blocking(self._replace(None, "", state, session_id, _AGENT, session_agent.agent_id))

    @override
    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """The agent; `None` if it does not exist."""
        found = run_blocking(self._read(session_id, _AGENT, agent_id))
        return None if found is None else SessionAgent.from_dict(found)

    @override
    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Replace an agent, except for the time of its creation. Raises `SessionException` without one."""
        agent_id = session_agent.agent_id
        before = self.read_agent(session_id, agent_id)
        missing = f"Agent {agent_id} in session {session_id} does not exist"
        if before is None:
            raise SessionException(missing)
        session_agent.created_at = before.created_at
        run_blocking(self._replace(True, missing, session_agent.to_dict(), session_id, _AGENT, agent_id))

    @override
    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Append a message to those of an agent."""
        run_blocking(self._append(session_id, agent_id, session_message))

    @override
    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        """The message with this number; `None` if there is none."""
        found = run_blocking(self._messages(session_id, agent_id))
        return next((each for each in reversed(found) if each.message_id == message_id), None)

    @override
    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Replace a message, except for the time of its creation. Raises `SessionException` without one."""
        before = self.read_message(session_id, agent_id, session_message.message_id)
        if before is None:
            raise SessionException(f"Message {session_message.message_id} does not exist")
        session_message.created_at = before.created_at
        run_blocking(self._update(session_id, agent_id, before, session_message))

    @override
    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent by their numbers. Raises `SessionException` without such an agent."""
        found = run_blocking(self._messages(session_id, agent_id))
        if not found and self.read_agent(session_id, agent_id) is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        return found[offset:] if limit is None else found[offset : offset + limit]

    @override
    def create_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any) -> None:
        """Create the state of a group of agents, or replace it."""
        state = multi_agent.serialize_state()
        run_blocking(self._replace(None, "", state, session_id, _MULTI_AGENT, multi_agent.id))

    @override
    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> Original | None:
        """The state of a group of agents; `None` if there is none."""
        return run_blocking(self._read(session_id, _MULTI_AGENT, multi_agent_id))

    @override
    def update_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any) -> None:
        """Replace the state of a group of agents. Raises `SessionException` if there is none."""
        missing = f"MultiAgent state {multi_agent.id} in session {session_id} does not exist"
        state = multi_agent.serialize_state()
        run_blocking(self._replace(True, missing, state, session_id, _MULTI_AGENT, multi_agent.id))

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()

    async def _read(self, *key: str) -> Original | None:
        async with self._sessions.open(*key) as log:
            records = await log.load()
        return records[0][_STATE] if records else None

    async def _replace(self, is_there: bool | None, error: str, state: Original, *key: str) -> None:
        """Replace the only record of a key, which must be there, or must not, unless `None` is given."""

        def replace(records: list[Original]) -> list[Original]:
            if is_there is not None and is_there != bool(records):
                raise SessionException(error)
            return [{_STATE: state}]

        async with self._sessions.open(*key) as log:
            await log.change(replace)

    async def _append(self, session_id: str, agent_id: str, message: SessionMessage) -> None:
        async with self._sessions.open(session_id, _MESSAGES, agent_id) as log:
            await log.append([{MESSAGE: message.to_dict()}])

    async def _messages(self, session_id: str, agent_id: str) -> list[SessionMessage]:
        async with self._sessions.open(session_id, _MESSAGES, agent_id) as log:
            found = [SessionMessage.from_dict(record[MESSAGE]) for record in await log.load()]
        return sorted(found, key=lambda each: each.message_id)

    async def _update(
        self, session_id: str, agent_id: str, before: SessionMessage, after: SessionMessage
    ) -> None:
        old, new = {MESSAGE: before.to_dict()}, {MESSAGE: after.to_dict()}
        async with self._sessions.open(session_id, _MESSAGES, agent_id) as log:
            await log.change(lambda records: [new if record == old else record for record in records])
            if after.redact_message is not None and before.redact_message is None:
                await self._forget(log.session.session_id, old)

    async def _forget(self, conversation_id: str, redacted: Original) -> None:
        """Erase what a redacted message said from the memory."""
        memory = self._sessions.memory
        said = None if memory is None else await memory.get_conversation(conversation_id)
        texts = [text_of(item) for item in items_of(redacted) if item["type"] == "message"]
        for message in () if said is None else said.messages:
            if memory is not None and message.content in texts:
                await memory.erase_message(conversation_id, message.message_id)

    async def _delete(self, session_id: str) -> None:
        if await self._read(session_id, _SESSION) is None:
            raise SessionException(f"Session {session_id} does not exist")
        for stored in await self._sessions.list(session_id):
            async with self._sessions.open(*stored.key) as log:
                await log.erase()
