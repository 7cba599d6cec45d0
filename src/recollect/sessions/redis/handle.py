"""One session's share of common connections, and the calls on its keys."""

from collections.abc import Sequence
from typing import Any

from ...errors import SessionClosedError
from . import lua
from .connections import Connections
from .layout import layout_of
from .windows import EVERYTHING, Window, read_window
from .wire import Argument, Wire

_MOST_ARGUMENTS = 1_000_000  # of one command


class Handle:
    """Runs scripts on the keys of one session, until it is closed."""

    def __init__(self, session_id: str, connections: Connections, key_prefix: str, ttl: str) -> None:
        self.keys = layout_of(key_prefix, connections.is_cluster).keys_of(session_id)
        self.connections = connections
        self._session_id = session_id
        self._ttl = ttl
        self._closed = False
        connections.acquire()

    def close(self) -> None:
        """Release the connections. Idempotent."""
        if not self._closed:
            self._closed = True
            self.connections.release()

    def wire(self) -> Wire:
        """The wire of the running event loop. Raises `SessionClosedError` after `close()`."""
        if self._closed:
            raise SessionClosedError(self._session_id)
        return self.connections.wire()

    async def run(
        self, script: lua.Script, keys: Sequence[bytes], *arguments: Argument, writes: bool = True
    ) -> Any:
        """Run a script and return its reply."""
        return await self.wire().run(script, keys, *arguments, writes=writes)

    async def write(self, script: lua.Script, keys: Sequence[bytes], *arguments: Argument) -> Any:
        """Run a script that takes the session id and the time to live first, and return its reply."""
        if len(arguments) > _MOST_ARGUMENTS:
            raise ValueError(f"too many items: Redis accepts at most {_MOST_ARGUMENTS:,} in one call")
        return await self.run(script, keys, self._session_id, self._ttl, *arguments)

    async def get_field(self, name: str) -> Any:
        """Return a field of the session's hash, or `None`."""
        return await self.wire().read(self.keys.session, "HGET", self.keys.session, name)

    async def newest_entries(self, limit: int | None) -> list[bytes]:
        """Return the newest entries as stored, oldest first; all of them if `limit` is `None`."""
        first = 0 if limit is None else -limit
        messages = self.keys.messages
        entries: list[bytes] = await self.wire().read(messages, "LRANGE", messages, first, -1)
        return entries

    async def state(self) -> bytes:
        """Return a value that changes with every change to the history. Empty sessions may share a value."""
        state: bytes = await self.run(lua.STATE, self.keys[:2], writes=False)
        return state

    async def look(self, window: str, argument: int = 0, limit: int | None = None) -> Window:
        """Read a window with at least `limit` items. The read is widened past corrupt entries."""
        width = EVERYTHING if limit is None else limit
        while True:
            found = await read_window(self._read, window, argument, width)
            if limit is None or len(found.items) >= limit or found.length < width:
                return found
            width *= 2

    async def _read(self, *arguments: Argument) -> Any:
        return await self.run(lua.READ, self.keys[:2], *arguments, writes=False)


def is_empty(state: bytes) -> bool:
    """Whether a session in this state is empty."""
    return length_of(state) == 0


def length_of(state: bytes) -> int:
    """The number of entries of a session in this state."""
    return int(state.partition(b" ")[0])
