"""Lists all sessions under a prefix, and deletes idle ones."""

import asyncio
import base64
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Self

from ..protocol import SessionInfo, SessionPage
from ..settings import check_limit
from . import lua
from .connections import Connections, connections_of, connections_to
from .layout import decode_metadata, layout_of
from .wire import Wire

_FEWEST = 50  # keys scanned per step
_MOST = 500


class RedisCatalog:
    """The sessions under one prefix.

    Redis has no list of sessions. Finding them means scanning all keys of the database, some hundred per
    step, and reading each session. A page needs as many steps as it takes to fill it. Deleting idle sessions
    scans all keys.
    """

    def __init__(self, *, redis_client: Any, key_prefix: str = "agents:session") -> None:
        self._closed = True  # until the connections are acquired
        is_shared = isinstance(redis_client, Connections)
        self._connections: Connections = redis_client if is_shared else connections_of(redis_client)
        self._layout = layout_of(key_prefix, self._connections.is_cluster)
        self._connections.acquire()
        self._closed = False

    @classmethod
    def from_url(
        cls, *, url: str, redis_kwargs: Mapping[str, Any] | None = None, key_prefix: str = "agents:session"
    ) -> Self:
        """Return the catalog of a URL. It shares the connections of the sessions there."""
        return cls(redis_client=connections_to(url, redis_kwargs), key_prefix=key_prefix)

    async def list_sessions(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SessionPage:
        """Return a page of sessions, in no order.

        Sessions created or deleted meanwhile may be missing or doubled.
        """
        if not check_limit(limit):
            raise ValueError("limit must be at least 1")
        wire = self._connections.wire()
        place, keys = self._decode_cursor(cursor)
        found: dict[str, SessionInfo] = {}
        while len(found) <= limit and (keys or place is not None):
            if not keys and place is not None:
                place, keys = await wire.scan(place, self._layout.pattern, max(limit, _FEWEST))
            for info in await self._describe(wire, keys):
                if _matches(info, user_id, agent_id):
                    found.setdefault(info.session_id, info)
            keys = []
        sessions = list(found.values())
        return SessionPage(sessions[:limit], _encode_cursor(place, sessions[limit:]))

    async def delete_idle_sessions(self, seconds: float) -> int:
        """Delete the sessions that were not updated for so many seconds. Return how many."""
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"seconds must be 0 or more, not {seconds}")
        wire = self._connections.wire()
        deleted = 0
        place: bytes | None = b""
        while place is not None:
            place, keys = await wire.scan(place, self._layout.pattern, _MOST)
            infos = await self._describe(wire, keys)
            deleted += sum(
                await asyncio.gather(*(self._delete_if_idle(wire, info, seconds) for info in infos))
            )
        return deleted

    def close(self) -> None:
        """Release the connections."""
        if not self._closed:
            self._closed = True
            self._connections.release()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    async def _describe(self, wire: Wire, keys: Iterable[bytes]) -> list[SessionInfo]:
        infos = await asyncio.gather(*(self._info_of(wire, key) for key in keys))
        return [info for info in infos if info is not None]

    async def _info_of(self, wire: Wire, key: bytes) -> SessionInfo | None:
        """Read the info of the session of a key.

        Return `None` if the hash is not a session of this prefix.
        """
        fields = await wire.run(lua.INFO, (key, key + b":messages"), writes=False)
        session_id, created, updated, metadata, count = fields
        name = session_id.decode(errors="replace")
        if not self._is_key_of(name, key):
            return None
        return SessionInfo(name, _utc(created), _utc(updated), count, decode_metadata(metadata))

    def _is_key_of(self, session_id: str, key: bytes) -> bool:
        try:
            return bool(session_id) and self._layout.keys_of(session_id).session == key
        except ValueError:
            return False

    async def _delete_if_idle(self, wire: Wire, info: SessionInfo, seconds: float) -> bool:
        """Delete a session if it is still idle."""
        if info.updated_at is None or (datetime.now(UTC) - info.updated_at).total_seconds() < seconds:
            return False
        keys = self._layout.keys_of(info.session_id)[:4]
        return bool(await wire.run(lua.CLEAR_IDLE, keys, str(seconds), writes=True))

    def _decode_cursor(self, cursor: str | None) -> tuple[bytes | None, list[bytes]]:
        if cursor is None:
            return b"", []
        try:
            place, ids = json.loads(base64.urlsafe_b64decode(cursor))
            keys = [self._layout.keys_of(session_id).session for session_id in ids]
            return (None if place is None else place.encode()), keys
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError("not a cursor of an earlier page") from error


def _encode_cursor(place: bytes | None, left: list[SessionInfo]) -> str | None:
    """Encode the scan position and the sessions that were found beyond the page."""
    if not left:
        return None
    content = [None if place is None else place.decode(), [info.session_id for info in left]]
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def _matches(info: SessionInfo, user_id: str | None, agent_id: str | None) -> bool:
    return user_id in (None, info.metadata.user_id) and agent_id in (None, info.metadata.agent_id)


def _utc(seconds: bytes) -> datetime | None:
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdigit() else None
