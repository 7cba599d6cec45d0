"""A call of the workload as a call of the public interface, and its result as the model tells it."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from recollect import (
    ConnectionLostError,
    DiskFullError,
    Item,
    PositionedItem,
    SessionMetadata,
    TransientError,
)

from .items import batch, code_of, codes_of, item_of, items_of, revised
from .journal import Call

_PAUSE = 0.01  # seconds between tries
_DISORDER = "[positions do not rise]"


async def make(session: Any, call: Call, is_over: Callable[[], bool]) -> Any:
    """Make the call and return its result."""
    arguments = call.arguments
    match call.kind:
        case "add":
            return await session.add_items(_new(call, arguments[0]))
        case "add_once":
            return await _add_until_taken(session, call, is_over)
        case "pop":
            popped = await session.pop_item()
            return None if popped is None else code_of(popped)
        case "clear":
            return await session.clear_session()
        case "replace":
            return await session.replace_items(_new(call, arguments[0]))
        case "transform":
            dropped, size = arguments
            return await session.transform_items(lambda items: items[dropped:] + _new(call, size))
        case "revise":
            return await session.revise_items(lambda items: [_revised(item, call) for item in items])
        case _:
            return await _read_or_branch(session, call)


async def _read_or_branch(session: Any, call: Call) -> Any:
    arguments = call.arguments
    match call.kind:
        case "describe":
            return await session.set_metadata(SessionMetadata(title=f"{call.writer}.{call.number}"))
        case "title":
            return (await session.get_metadata()).title
        case "get":
            return codes_of(await session.get_items(limit=arguments[0]))
        case "read_forwards":
            return await read_forwards(session, arguments[0])
        case "read_backwards":
            return await _read_backwards(session, arguments[0])
        case "clear_branch":
            return await session.clear_branch()
        case "branch":
            return await session.create_branch_from_content(f"<{arguments[0]}", f"b{call.number}")
        case "switch":
            return await session.switch_to_branch(arguments[0])
        case "delete":
            return await session.delete_branch(arguments[0], force=arguments[1])
    raise NotImplementedError(call.kind)


def _new(call: Call, size: int) -> list[Item]:
    return items_of(batch(call.writer, call.number, size))


def _revised(item: Item, call: Call) -> Item | None:
    code = revised(code_of(item), call.number)
    return None if code is None else item_of(code)


async def _add_until_taken(session: Any, call: Call, is_over: Callable[[], bool]) -> None:
    """Try again after whatever happens, as one may with an id: it is stored once."""
    unknown: ConnectionLostError | None = None
    while True:
        try:
            await session.add_batch(_new(call, call.arguments[0]), f"{call.writer}.{call.number}")
            return
        except ConnectionLostError as error:
            unknown = error
        except (TransientError, DiskFullError):
            if is_over():
                if unknown is not None:
                    raise unknown from None
                raise
        if unknown is not None and is_over():
            raise unknown
        await asyncio.sleep(_PAUSE)


async def read_forwards(session: Any, width: int) -> list[str]:
    """A history page by page, from the start."""
    pages: list[PositionedItem] = []
    while page := await session.read_after(pages[-1].position if pages else 0, width):
        pages += page
    return _told(pages)


async def _read_backwards(session: Any, width: int) -> list[str]:
    pages: list[PositionedItem] = []
    while page := await session.read_before(pages[0].position if pages else None, width):
        pages = page + pages
    return _told(pages)


def _told(pages: list[PositionedItem]) -> list[str]:
    positions = [row.position for row in pages]
    in_order = all(one < other for one, other in pairwise(positions))
    return codes_of([row.item for row in pages]) if in_order else [_DISORDER]
