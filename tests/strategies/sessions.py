"""Sessions for these tests: one with only the four methods, and one that counts its reads."""

from typing import Any

from recollect import InMemorySession, PositionedItem, Session
from recollect.sessions.wrappers import SessionWrapper

Item = dict[str, Any]


class PlainSession:
    """Only the contract: no positions, no notes, no rewriting."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.session_settings: Any = None
        self._inner = InMemorySession(session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return await self._inner.get_items(limit)

    async def add_items(self, items: list[Any]) -> None:
        await self._inner.add_items(items)

    async def pop_item(self) -> Any:
        return await self._inner.pop_item()

    async def clear_session(self) -> None:
        await self._inner.clear_session()


class CountingSession(SessionWrapper):
    """Counts the items that are read, and the notes that are written."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.items_read = 0
        self.notes_written = 0

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self._counted(await super().get_items(limit))

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        return self._counted(await self._any.read_after(position, limit))

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        return self._counted(await self._any.read_before(position, limit))

    async def get_note(self, key: str) -> Any:
        return await self._any.get_note(key)

    async def set_note(self, key: str, data: Any, version: int) -> bool:
        self.notes_written += 1
        stored: bool = await self._any.set_note(key, data, version)
        return stored

    @property
    def _any(self) -> Any:
        return self.wrapped

    def _counted(self, items: list[Any]) -> list[Any]:
        self.items_read += len(items)
        return items


def turn(number: int, words: str = "") -> list[Item]:
    """A turn with a tool call: four items."""
    return [
        {"role": "user", "content": f"question {number} {words}"},
        {
            "type": "function_call",
            "call_id": f"c{number}",
            "name": "look_up",
            "arguments": f'{{"n": {number}}}',
        },
        {"type": "function_call_output", "call_id": f"c{number}", "output": f"result {number} {words}"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def turns(first: int, last: int) -> list[Item]:
    """The items of the turns with these numbers."""
    return [item for number in range(first, last + 1) for item in turn(number)]
