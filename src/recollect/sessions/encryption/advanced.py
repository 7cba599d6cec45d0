"""Branches and turns through encryption: what gives contents is decrypted, and searched here."""

from dataclasses import replace
from typing import Any

from ..advanced.branching import BranchDiff
from ..advanced.turns import UserTurn, describe_turns, matching_turns
from ..protocol import Items
from .reading import Reader


async def read_turns(reader: Reader, branch_id: str | None = None) -> list[UserTurn]:
    """The user turns of a branch, by default the current one, as far as they can be read."""
    wrapped: Any = reader.wrapped
    turns: list[UserTurn] = await wrapped.read_turns(branch_id)
    readout = await reader.open([turn.item for turn in turns])
    await reader.check(readout)
    pairs = zip(turns, readout.items, strict=True)
    return [turn._replace(item=item) for turn, item in pairs if item is not None]


async def get_conversation_turns(reader: Reader, branch_id: str | None = None) -> list[dict[str, Any]]:
    """Each user turn as a dict: `turn, content` (shortened), `full_content, timestamp, can_branch`."""
    return describe_turns(await read_turns(reader, branch_id))


async def find_turns_by_content(
    reader: Reader, search_term: str, branch_id: str | None = None
) -> list[dict[str, Any]]:
    """The user turns that contain a text, whatever its case, as dicts."""
    matching_turns([], search_term)  # a bad one is refused before anything is read
    return matching_turns(await read_turns(reader, branch_id), search_term)


async def create_branch_from_content(reader: Reader, search_term: str, branch_name: str | None = None) -> str:
    """Make a branch from the first user turn that contains a text, and make it current."""
    wrapped: Any = reader.wrapped
    turns = await find_turns_by_content(reader, search_term)
    if not turns:
        raise ValueError("no user turn contains that text")
    branch: str = await wrapped.create_branch_from_turn(turns[0]["turn"], branch_name)
    return branch


async def diff_branches(reader: Reader, first: str, second: str | None = None) -> BranchDiff:
    """What two branches share, and what each has after that, as far as it can be read."""
    wrapped: Any = reader.wrapped
    diff: BranchDiff = await wrapped.diff_branches(first, second)
    return replace(
        diff,
        only_in_first=await _readable(reader, diff.only_in_first),
        only_in_second=await _readable(reader, diff.only_in_second),
    )


async def _readable(reader: Reader, stored: Items) -> Items:
    readout = await reader.open(stored)
    await reader.check(readout)
    return readout.readable()
