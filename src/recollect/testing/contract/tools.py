"""Helpers of session tests: items, ids, and a runner for async tests."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ...items import Item

HOSTILE_IDS = [
    "a",
    "a:b",
    "a%",
    "a_",
    "%",
    "'; DROP TABLE agent_sessions; --",
    '"quoted"',
    "back\\slash",
    "new\nline",
    "会话-😀",
    " ",
    "x" * 4096,
]

ODD_ITEMS: list[Item] = [
    {"role": "user", "content": "plain"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "你好 😀"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": "\\u00e9\\n"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "", "status": None},
    {"type": "of_the_future", "nested": {"list": [1, 2.5, -0.0, 1e-300, True, None, {}], "": ""}},
    {"role": "user", "content": "big", "n": 2**80, "m": -(2**63) - 1},
    {"role": "user", "content": "surrogate \ud83d alone"},
    {"role": "user", "content": "control \x00 \x1f \x7f   "},
    {},
]


UNFIT_TEXTS = ["nul \0 inside", "half \ud83d of a character"]
"""Valid Python strings that not every database can store as text."""


def message(text: object) -> Item:
    """Return a user message."""
    return {"role": "user", "content": str(text)}


def texts(items: list[Any]) -> list[str]:
    """Return the contents of plain messages."""
    return [item["content"] for item in items]


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on its own event loop, independent of pytest plugins."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def close(session: Any) -> None:
    """Close a session with `aclose` or `close`."""
    closing = getattr(session, "aclose", None) or getattr(session, "close", None)
    outcome = closing() if closing is not None else None
    if isinstance(outcome, Awaitable):
        await outcome


def assert_whole_and_ordered(found: list[str], writers: int, batches: int, size: int) -> None:
    """Assert that every batch is stored once and contiguously, in the order of its writer."""
    assert len(found) == writers * batches * size
    starts = [found[index].split("/") for index in range(0, len(found), size)]
    assert found == [f"{writer}/{batch}/{n}" for writer, batch, _ in starts for n in range(size)]
    for writer in range(writers):
        assert [int(batch) for each, batch, _ in starts if each == str(writer)] == list(range(batches))
