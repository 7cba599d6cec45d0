"""Where the records of a framework are stored: in sessions, exactly, with a copy for long-term memory.

An adapter gives a `Framework`: its name, and a function that says what a record means as items. Everything
else is here. Each conversation of the framework is one session. Its items carry the records as they were
given (`items/originals.py`), so the session is erased, exported, encrypted and listed as any other one.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid5

from ..errors import InvalidValueError
from ..items import Item
from ..items.originals import Original, carry, change_originals, originals_in
from ..memory.conversation import check_owner
from ..memory.rights.receipt import Receipt
from ..memory.store import MemoryStore
from ..sessions.changes import whole_history
from ..sessions.manager import SessionManager, open_session
from ..sessions.protocol import AppendsOnce, Described, Rewritable, Session, SessionMetadata, require_ability
from ..sql.columns import check_id
from ..sql.urls import sqlite_path
from .recording import Recorder

_IDS = UUID("c1f7a0d2-6f0e-5d43-8c64-2f1f7ab9d0c5")  # the namespace of our ids
_PAGE = 500  # sessions


@dataclass(frozen=True)
class Framework:
    """A framework whose conversations are stored."""

    name: str
    to_items: Callable[[Original], list[Item]]
    """What a record means. An empty list: nothing that a person or a model has said."""


@dataclass(frozen=True)
class StoredKey:
    """A conversation of a framework in a listing."""

    key: tuple[str, ...]
    updated_at: datetime | None
    item_count: int
    user_id: str | None = None


class FrameworkSessions:
    """The conversations of one framework, agent and user in a database.

    With a `memory`, which must be on the same database, what was said is recorded: it is in the dashboard and
    is searched. With `learn`, it is learned from, after `learn_after` seconds of quiet if that is given. With
    an `encryption_key`, records are encrypted. Recorded messages would not be, so there is either a key or a
    memory. Other `options` are those of `open_session`.
    """

    def __init__(
        self,
        framework: Framework,
        url_or_path: str | Path,
        *,
        agent_id: str,
        user_id: str | None = None,
        memory: MemoryStore | None = None,
        learn: bool = False,
        learn_after: float | None = None,
        encryption_key: str | Sequence[str] | None = None,
        create_tables: bool = False,
        **options: Any,
    ) -> None:
        if memory is None and (learn or learn_after is not None):
            raise InvalidValueError("to learn from conversations, give a memory")
        if memory is not None and encryption_key is not None:
            raise InvalidValueError(
                "give either a memory or an encryption_key: recorded messages are readable"
            )
        if memory is not None and user_id is None:
            raise InvalidValueError("a memory needs a user_id")
        self.framework = framework
        self.agent_id = check_owner("agent_id", agent_id)
        self.user_id = None if user_id is None else check_owner("user_id", user_id)
        self.memory = memory
        self._learn_after = learn_after if learn else math.inf
        self._encryption_key = encryption_key
        self._url = str(url_or_path)
        is_file = sqlite_path(self._url) is not None
        self._options = options if is_file else {**options, "create_tables": create_tables}
        self._manager = SessionManager(self._url, **self._options)

    @property
    def tenant(self) -> str:
        """The tenant that owns the conversations."""
        return "default" if self.memory is None else self.memory.tenant

    def open(self, *key: str, title: str | None = None) -> "FrameworkSession":
        """The conversation with this key. Nothing is stored until something is appended."""
        checked = tuple(check_id("a part of the key", part) for part in key)
        data = {"tenant": self.tenant, "framework": self.framework.name, "key": list(checked)}
        metadata = SessionMetadata(self.user_id, self.agent_id, title, data)
        session = open_session(self._url, self.session_id_of(*checked), metadata=metadata, **self._options)
        if self._encryption_key is not None:
            from ..sessions.encryption import EncryptedSession  # needs the extra `encrypt`

            session = EncryptedSession(
                session.session_id, session, self._encryption_key, ttl=None, cipher="aes-gcm"
            )
        recorder = None
        if self.memory is not None and self.user_id is not None:
            recorder = Recorder(self.memory, self.agent_id, self.user_id, session, self._learn_after)
        return FrameworkSession(self.framework, checked, session, metadata, recorder)

    def session_id_of(self, *key: str) -> str:
        """The id of a session, and of its recorded conversation. No other user or tenant has the same."""
        owner = [self.framework.name, self.tenant, self.agent_id, self.user_id]
        return str(uuid5(_IDS, json.dumps([*owner, *key])))

    def of(self, agent_id: str, user_id: str | None) -> Self:
        """The conversations of another agent and user in the same database, with the same options."""
        other = copy(self)
        other.agent_id = check_owner("agent_id", agent_id)
        other.user_id = None if user_id is None else check_owner("user_id", user_id)
        return other

    async def list(self, *prefix: str, of_any_user: bool = False) -> list[StoredKey]:
        """The stored conversations whose key begins so, the latest used first."""
        user_id = None if of_any_user else self.user_id
        found: list[StoredKey] = []
        cursor = None
        while True:
            page = await self._manager.list_sessions(
                user_id=user_id, agent_id=self.agent_id, limit=_PAGE, cursor=cursor
            )
            for each in page.sessions:
                owner, key = each.metadata.user_id, self._key_in(each.metadata.data)
                is_mine = of_any_user or owner == self.user_id
                if is_mine and key is not None and key[: len(prefix)] == prefix:
                    found.append(StoredKey(key, each.updated_at, each.item_count, owner))
            cursor = page.next_cursor
            if cursor is None:
                return found

    def _key_in(self, data: Mapping[str, Any]) -> tuple[str, ...] | None:
        mine = (self.framework.name, self.tenant)
        key = data.get("key")
        return tuple(key) if (data.get("framework"), data.get("tenant")) == mine and key else None

    def close(self) -> None:
        """Release the database. May be called more than once."""
        self._manager.close()

    async def aclose(self) -> None:
        """The same as `close`."""
        self.close()


class FrameworkSession:
    """One conversation of a framework: its records, and the session that stores them."""

    def __init__(
        self,
        framework: Framework,
        key: tuple[str, ...],
        session: Session,
        metadata: SessionMetadata,
        recorder: Recorder | None,
    ) -> None:
        self.key = key
        self._metadata = metadata
        self.session = session
        self._framework = framework
        self._recorder = recorder

    async def create(self) -> None:
        """Store the conversation before it has any record, so that it is listed."""
        await require_ability(self.session, Described).set_metadata(self._metadata)

    async def load(self) -> list[Original]:
        """All records, the oldest first, as they were given."""
        return originals_in(await whole_history(self.session))

    async def append(self, records: Sequence[Original], batch_id: str | None = None) -> bool:
        """Append records: all or none. With a `batch_id`, repeating the call within a day adds nothing.

        Returns whether they are new. Raises `InvalidItemError` if one cannot be stored exactly.
        """
        items = [item for record in records for item in self._items_of(record)]
        is_new = bool(items)
        if batch_id is not None and items:
            is_new = await require_ability(self.session, AppendsOnce).add_batch(items, batch_id)
        elif items:
            await self.session.add_items(items)
        if items:
            await self.record()
        return is_new

    async def change(self, change: Callable[[list[Original]], list[Original]]) -> None:
        """Replace the records by the result of the pure function `change`, in one atomic step."""
        rewritable = require_ability(self.session, Rewritable)
        await rewritable.transform_items(
            lambda items: change_originals(items, change, self._framework.to_items)
        )
        await self.record()

    async def clear(self) -> None:
        """Remove all records. What was recorded in the memory stays."""
        await self.session.clear_session()

    async def erase(self) -> Receipt | None:
        """Erase the records, the recorded conversation and what was learned from it. Returns the receipt."""
        receipt = None if self._recorder is None else await self._recorder.erase()
        await self.session.clear_session()
        return receipt

    async def record(self) -> None:
        """Record what was said and is not yet recorded, as each append does, also after a crash."""
        if self._recorder is not None:
            await self._recorder.record()

    def _items_of(self, record: Original) -> list[Item]:
        return carry(record, self._framework.to_items(record))

    async def aclose(self) -> None:
        """Release the session."""
        await self.session.aclose()  # type: ignore[attr-defined] # every session that `open_session` returns

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
