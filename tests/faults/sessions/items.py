"""Items that tell who wrote them, in which call, and where they stood in its batch.

The code of an item is `client.task.call/place`, with `~call` for the call that last revised it. Nothing else
is needed to know the whole item, so that one that came back changed is noticed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from recollect import Item

_LENGTHS = (0, 0, 0, 20, 20, 80, 80, 300, 1200, 5000)
_FILLINGS = ("word ", "é–ß ", "记忆。", "😀\n", '"\\{}')
KINDS = 4  # an item's place in its batch decides what it is


def batch(writer: str, call: int, size: int) -> list[str]:
    """The codes of the items that a call writes."""
    return [f"{writer}.{call}/{place}" for place in range(size)]


def items_of(codes: Sequence[str]) -> list[Item]:
    """The items of these codes."""
    return [item_of(code) for code in codes]


@lru_cache(maxsize=4096)
def _text_of(code: str) -> str:
    chance = crc32(code.encode())
    filling = _FILLINGS[chance % len(_FILLINGS)]
    return f"<{code}>" + filling * (_LENGTHS[chance // 7 % len(_LENGTHS)] // len(filling))


def item_of(code: str) -> Item:
    """The item of a code."""
    text, place = _text_of(code), place_of(code)
    match place % KINDS:
        case 0:
            return {"role": "user", "content": text}
        case 1:
            return {"type": "function_call", "call_id": code, "name": "look_up", "arguments": text}
        case 2:
            return {"type": "function_call_output", "call_id": code, "output": text}
        case _:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "role": "assistant", "content": content}


def code_of(item: Any) -> str:
    """The code of an item that is exactly as it was written; else what is wrong with it, in brackets."""
    code = _code_within(item)
    return code if code is not None and item == item_of(code) else f"[an item changed, of {code}]"


def codes_of(items: Sequence[Any]) -> list[str]:
    """The codes of items."""
    return [code_of(item) for item in items]


def _code_within(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    content = item.get("content", item.get("arguments", item.get("output")))
    if isinstance(content, list):
        content = content[0].get("text")
    return content[1 : content.index(">")] if isinstance(content, str) and ">" in content else None


def place_of(code: str) -> int:
    """Where in its batch an item stood."""
    return int(_unrevised(code).rpartition("/")[2])


def batch_of(code: str) -> str:
    """What the items of one call have in common."""
    return _unrevised(code).rpartition("/")[0]


def writer_of(code: str) -> tuple[str, int]:
    """Who wrote an item, and in which of their calls."""
    writer, _, call = batch_of(code).rpartition(".")
    return writer, int(call)


def starts_turn(code: str) -> bool:
    """Whether it is a message of the user."""
    return place_of(code) % KINDS == 0


def _unrevised(code: str) -> str:
    return code.partition("~")[0]


def revised(code: str, call: int) -> str | None:
    """What a call that revises makes of an item: a few are changed, a few go (`None`), most stay."""
    match crc32(f"{code} {call}".encode()) % 8:
        case 0:
            return None
        case 1 | 2:
            return f"{_unrevised(code)}~{call}"
        case _:
            return code
