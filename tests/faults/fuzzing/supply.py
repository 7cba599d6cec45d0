"""Values made from bytes: the same bytes always make the same values, and any bytes make some."""

from collections.abc import Sequence
from typing import Any, TypeVar

Item = dict[str, Any]
_T = TypeVar("_T")

_KINDS = (
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "computer_call",
    "computer_call_output",
    "shell_call",
    "shell_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "tool_search_call",
    "tool_search_output",
    "program",
    "program_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "web_search_call",
    "compaction",
    "item_reference",
    "from_the_future",
)
_FIELDS = (
    "type",
    "role",
    "id",
    "call_id",
    "approval_request_id",
    "caller",
    "caller_id",
    "name",
    "content",
    "text",
    "output",
    "result",
    "arguments",
    "action",
    "actions",
    "operation",
    "input",
    "summary",
    "code",
    "tools",
    "",
)
_WORDS = (
    "user",
    "assistant",
    "system",
    "hello",
    "secret",
    "天气",
    "😀",
    "\ud800",
    "\0",
    "",
    "c1",
    '{"a": "secret"}',
)
_NUMBERS = (0, 1, -1, 2**63, 2**64, -(2**63) - 1, 10**40, 0.5, -0.0, 1.5e308, 1e-320, 100, 4096)
_MOST_LEVELS = 6


class Supply:
    """Bytes that are used up from the front; when there are none left, it gives zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def is_empty(self) -> bool:
        """Whether all bytes are used up."""
        return self._place >= len(self._data)

    def byte(self) -> int:
        """The next byte."""
        place = self._place
        self._place = place + 1
        return self._data[place] if place < len(self._data) else 0

    def number(self, below: int) -> int:
        """A number from 0, less than this one, which is at most 65,536."""
        return (self.byte() if below <= 256 else self.byte() << 8 | self.byte()) % below

    def choose(self, options: Sequence[_T]) -> _T:
        """One of these."""
        return options[self.number(len(options))]

    def rest(self) -> bytes:
        """All that is left."""
        place, self._place = self._place, len(self._data)
        return self._data[place:]

    def take(self, count: int) -> bytes:
        """The next bytes, or as many as there are."""
        place = self._place
        self._place = place + count
        return self._data[place : place + count]

    def text(self) -> str:
        """A word that means something, or any characters; halves of surrogate pairs among them."""
        kind = self.byte()
        if kind < 160:
            return _WORDS[kind % len(_WORDS)]
        return self.take(kind % 24).decode("utf-8", "surrogateescape")

    def value(self, level: int = 0) -> Any:
        """A JSON value."""
        kind = self.byte() % 16
        if kind < 7:
            return self.text()
        if kind < 10:
            return _NUMBERS[self.byte() % len(_NUMBERS)]
        if kind < 12 or level >= _MOST_LEVELS or self.is_empty:
            return (None, True, False)[self.byte() % 3]
        if kind < 14:
            return [self.value(level + 1) for _ in range(self.byte() % 4)]
        return self.mapping(level + 1)

    def mapping(self, level: int = 0) -> Item:
        """A JSON object, with fields that items have and others."""
        return {self._field(): self.value(level) for _ in range(self.byte() % 5)}

    def _field(self) -> str:
        number = self.byte()
        return _FIELDS[number % len(_FIELDS)] if number < 240 else self.text()

    def item(self) -> Item:
        """An item: about as a model makes it, or with anything in any field."""
        kind = self.byte()
        if kind < 60:
            return {"role": ("user", "user", "assistant", "system")[kind % 4], "content": self.text()}
        if kind >= 200:
            return self.mapping()
        item = {"type": _KINDS[kind % len(_KINDS)], "call_id": f"c{self.byte() % 6}"}
        if kind % 3 == 0:
            item.update(self.mapping())
        return item

    def items(self, most: int = 16) -> list[Item]:
        """A history."""
        made: list[Item] = []
        while not self.is_empty and len(made) < most:
            made.append(self.item())
        return made
