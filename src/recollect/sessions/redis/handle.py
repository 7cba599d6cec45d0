"""One session's hold on the connections that many share, and the calls it makes on its keys."""

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
        """Let go of the connections. Twice is harmless."""
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
        """What a script returns."""
        return await self.wire().run(script, keys, *arguments, writes=writes)

    async def write(self, script: lua.Script, keys: Sequence[bytes], *arguments: Argument) -> Any:
        """What a script returns that takes the session's id and its time to live first."""
        if len(arguments) > _MOST_ARGUMENTS:
            raise ValueError(f"too many items: Redis takes no more than {_MOST_ARGUMENTS:,} at once")
        return await self.run(script, keys, self._session_id, self._ttl, *arguments)

    async def get_field(self, name: str) -> Any:
        """A field of the session's hash, `None` where there is none."""
        return await self.wire().read(self.keys.session, "HGET", self.keys.session, name)

    async def newest_entries(self, limit: int | None) -> list[bytes]:
        """The last entries as they are stored, oldest first; `None` for all."""
        first = 0 if limit is None else -limit
        messages = self.keys.messages
        entries: list[bytes] = await self.wire().read(messages, "LRANGE", messages, first, -1)
        return entries

    async def state(self) -> bytes:
        """What is another after any change to the history, except that all that hold nothing may be alike."""
        state: bytes = await self.run(lua.STATE, self.keys[:2], writes=False)
        return state

    async def look(self, window: str, argument: int = 0, limit: int | None = None) -> Window:
        """A window with at least `limit` items: a wider look is taken where corrupt entries stand between."""
        width = EVERYTHING if limit is None else limit
        while True:
            found = await read_window(self._read, window, argument, width)
            if limit is None or len(found.items) >= limit or found.length < width:
                return found
            width *= 2

    async def _read(self, *arguments: Argument) -> Any:
        return await self.run(lua.READ, self.keys[:2], *arguments, writes=False)


def is_empty(state: bytes) -> bool:
    """Whether a session in this state holds nothing."""
    return length_of(state) == 0


def length_of(state: bytes) -> int:
    """How many entries a session in this state holds."""
    return int(state.partition(b" ")[0])
