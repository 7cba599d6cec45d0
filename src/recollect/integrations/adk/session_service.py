"""The sessions of ADK: events, and state by its scopes."""

import asyncio
import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python
from typing_extensions import override

from ...ids import new_id
from ...items.originals import Original
from ..framework import FrameworkSessions, StoredKey
from .events import (
    ADK,
    CREATED,
    delta_of,
    event_of,
    is_created,
    merged,
    record_of,
    split_state,
    state_of,
    updated_at,
)

_SESSION, _STATE = "session", "state"  # the first parts of keys
_CHANGED = "changed"  # the field of a change of shared state
_CHANGES = 100  # of shared state; then they become one
_AT_ONCE = 8  # sessions that a listing reads


class SessionService(BaseSessionService):
    """Sessions of all apps and users in a database, exactly. For the options see `FrameworkSessions`.

    An app of ADK is an agent of Recollect. State with the prefix `user:` is the user's, and erased with them;
    state with the prefix `app:` is nobody's. `delete_session` also erases what was recorded and learned.
    """

    def __init__(self, url_or_path: str | Path, **options: Any) -> None:
        # Each call names the app and the user; these are never used.
        self._sessions = FrameworkSessions(ADK, url_or_path, agent_id="adk", user_id="adk", **options)

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session. Raises `AlreadyExistsError` if there is one with this id."""
        name = (session_id or "").strip() or new_id()
        app, user, local = split_state(to_jsonable_python(state or {}))
        created = {CREATED: {"state": local, "time": time.time()}}

        def create(records: list[Original]) -> list[Original]:
            if is_created(records):
                raise AlreadyExistsError(f"Session with id {name} already exists.")
            return [created]

        async with self._sessions.of(app_name, user_id).open(_SESSION, name) as log:
            await log.change(create)
        batch_id = new_id()
        await self._share(app_name, None, app, batch_id)
        await self._share(app_name, user_id, user, batch_id)
        return await self._session(app_name, user_id, name, [created])

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with its events, or those that `config` asks for; `None` if it does not exist."""
        name = session_id.strip()
        records = await self._load(app_name, user_id, name) if name else []
        if not is_created(records):
            return None
        session = await self._session(app_name, user_id, name, records)
        session.events = _chosen([event_of(record) for record in records[1:]], config)
        return session

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of a user, or of all users, without events, the latest used last."""
        sessions = self._sessions.of(app_name, user_id)
        stored = await sessions.list(_SESSION, of_any_user=user_id is None)
        turn = asyncio.Semaphore(_AT_ONCE)

        async def read(each: StoredKey) -> Session | None:
            owner, name = str(each.user_id), each.key[1]
            async with turn:
                records = await self._load(app_name, owner, name)
                return await self._session(app_name, owner, name, records) if is_created(records) else None

        found = [each for each in await asyncio.gather(*map(read, stored)) if each is not None]
        found.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=found)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session, and what was recorded and learned from it. State of the app and user stays."""
        if session_id.strip():
            async with self._sessions.of(app_name, user_id).open(_SESSION, session_id.strip()) as log:
                await log.erase()

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of the user in all sessions of the app, without the prefix of its keys."""
        return await self._shared(app_name, user_id)

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event and its changes of state. An equal event that is stored already changes nothing.

        Changes of the app's and the user's state are stored first. If the process is killed before the event
        follows, a repeated call completes it.
        """
        if event.partial:
            return event
        async with self._sessions.of(session.app_name, session.user_id).open(_SESSION, session.id) as log:
            if not await log.session.get_items(limit=1):
                raise SessionNotFoundError(f"Session {session.id} not found.")
            self._apply_temp_state(session, event)
            self._trim_temp_delta_state(event)
            record = record_of(event)
            batch_id = sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
            app, user, _ = split_state(delta_of(record))
            await self._share(session.app_name, None, app, f"{session.id}/{batch_id}")
            await self._share(session.app_name, session.user_id, user, f"{session.id}/{batch_id}")
            is_new = await log.append([record], batch_id)
        if is_new:
            session.last_update_time = event.timestamp
            self._commit_event_to_session(session, event)
        return event

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()

    async def _load(self, app_name: str, user_id: str, name: str) -> list[Original]:
        async with self._sessions.of(app_name, user_id).open(_SESSION, name) as log:
            return await log.load()

    async def _session(self, app_name: str, user_id: str, name: str, records: list[Original]) -> Session:
        app, user = await self._shared(app_name, None), await self._shared(app_name, user_id)
        state = merged(state_of(records), app, user)
        return Session(
            id=name, app_name=app_name, user_id=user_id, state=state, last_update_time=updated_at(records)
        )

    async def _shared(self, app_name: str, user_id: str | None) -> dict[str, Any]:
        """The state of an app or a user: all changes, one after the other."""
        async with self._sessions.of(app_name, user_id).open(_STATE) as log:
            changes = await log.load()
            if len(changes) > _CHANGES:
                await log.change(lambda records: [{_CHANGED: _folded(records)}])
            return _folded(changes)

    async def _share(self, app_name: str, user_id: str | None, change: dict[str, Any], batch_id: str) -> None:
        if change:
            async with self._sessions.of(app_name, user_id).open(_STATE) as log:
                await log.append([{_CHANGED: change}], batch_id)


def _folded(changes: list[Original]) -> dict[str, Any]:
    return {key: value for change in changes for key, value in change[_CHANGED].items()}


def _chosen(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    """The events that a configuration asks for: of the most recent ones, those after the last older one."""
    if config is None:
        return events
    if config.num_recent_events is not None:
        events = events[len(events) - min(config.num_recent_events, len(events)) :]
    if config.after_timestamp is None:
        return events
    older = [place for place, event in enumerate(events) if event.timestamp < config.after_timestamp]
    return events[older[-1] + 1 :] if older else events
