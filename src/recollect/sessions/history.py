"""Functions for a whole history: show, export, import, shorten, undo, repair.

A change is one atomic step if the session is `Rewritable`. The result says if it was not.
No change leaves a call without its output.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import ImportFormatError
from ..items import (
    Item,
    decode_item,
    find_orphans,
    group_items,
    is_call,
    is_output,
    is_reasoning,
    keep_whole_groups,
    role_of,
    text_of,
    turn_starts,
)
from ..private_files import replace_privately
from .changes import HistoryCounts, ItemCount, RemovedItems, change_history, replace_history, whole_history
from .protocol import Items, Session

_SHOWN_OUTPUT = 100

Format = Literal["json", "jsonl"]


def items_to_messages(items: Sequence[Item]) -> list[dict[str, str]]:
    """Convert items into messages for display: role and text, tool output shortened to 100 characters."""
    messages = []
    for item in items:
        role = role_of(item)
        if role is not None:
            messages.append({"role": role, "content": text_of(item)})
        elif is_call(item):
            messages.append({"role": "system", "content": f"[Tool call: {item.get('name', item['type'])}]"})
        elif is_output(item):
            messages.append({"role": "system", "content": f"[Tool result: {_shorten(text_of(item))}]"})
    return messages


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_OUTPUT else text[:_SHOWN_OUTPUT] + "..."


async def compress_history(
    session: Session, target_count: int = 20, preserve_system: bool = True
) -> HistoryCounts:
    """Keep the newest items, at most `target_count`, and the system messages.

    A group of items that does not fit is removed as a whole. Returns the number of items before and after.
    """
    if target_count < 0:
        raise ValueError(f"target_count must not be negative: {target_count}")
    counts = (0, 0)

    def compress(items: list[Item]) -> list[Item]:
        nonlocal counts
        kept = _compress(items, target_count, preserve_system)
        counts = (len(items), len(kept))
        return kept

    atomic = await change_history(session, compress)
    return HistoryCounts(*counts, atomic)


def _compress(items: list[Item], target_count: int, preserve_system: bool) -> list[Item]:
    if len(items) <= target_count:
        return items
    instructions = ("system", "developer") if preserve_system else ()
    system = [n for n, item in enumerate(items) if role_of(item) in instructions]
    is_system = set(system)
    others = [n for n in range(len(items)) if n not in is_system]
    room = max(target_count - len(system), 0)
    return keep_whole_groups(items, {*system, *others[len(others) - room :]})


async def undo_items(session: Session, count: int = 1) -> RemovedItems:
    """Remove the newest items and all items that depend on them, and return the removed items."""
    if count < 0:
        raise ValueError(f"count must not be negative: {count}")
    return await _cut(session, lambda items: max(len(items) - count, 0))


async def undo_turn(session: Session) -> RemovedItems:
    """Remove the newest turn, from its user message on, and return the removed items."""
    return await _cut(session, lambda items: (turn_starts(items) or [len(items)])[-1])


async def _cut(session: Session, first_removed: Any) -> RemovedItems:
    removed: list[Item] = []

    def cut(items: list[Item]) -> list[Item]:
        nonlocal removed
        first = first_removed(items)
        groups = group_items(items)
        torn = set(groups[first:])
        removed = [item for item, group in zip(items, groups, strict=True) if group in torn]
        return [item for item, group in zip(items, groups, strict=True) if group not in torn]

    atomic = await change_history(session, cut)
    return RemovedItems(removed, atomic)


async def reset_session(session: Session, initial_items: Items = ()) -> ItemCount:  # type: ignore[assignment]
    """Replace the history by initial items. Returns their number."""
    items = list(initial_items)
    return ItemCount(len(items), await replace_history(session, items))


# --- export and import ---------------------------------------------------------------------------------


async def export_session(session: Session, path: str | Path, format: Format | None = None) -> int:  # noqa: A002
    """Write the history to a file, as one JSON document or as JSON Lines. The default depends on the suffix.

    The file appears completely or not at all, with mode 0600. Returns the number of items.
    """
    items = await whole_history(session)
    document = {"session_id": session.session_id, "item_count": len(items), "items": items}
    chosen = _format_of(path, format)
    await asyncio.to_thread(lambda: _write_whole(Path(path), _serialize(document, chosen)))
    return len(items)


def _serialize(document: dict[str, Any], format: Format) -> bytes:  # noqa: A002
    if format == "jsonl":
        return b"".join(_to_json(item) + b"\n" for item in document["items"])
    return _to_json(document, indent=2) + b"\n"


async def import_session(
    session: Session,
    path: str | Path,
    format: Format | None = None,  # noqa: A002
) -> ItemCount:
    """Replace the history by a file from `export_session`. Returns the number of items.

    Raises `ImportFormatError` and changes nothing if the file has another format.
    """
    text = await asyncio.to_thread(_read_text, Path(path))
    items = _from_lines(text) if _format_of(path, format) == "jsonl" else _from_document(text)
    return ItemCount(len(items), await replace_history(session, items))


def _format_of(path: str | Path, given: Format | None) -> Format:
    if given not in (None, "json", "jsonl"):
        raise ValueError(f"format must be 'json' or 'jsonl', not {given!r}")
    return given or ("jsonl" if str(path).endswith((".jsonl", ".ndjson")) else "json")


def _to_json(value: object, indent: int | None = None) -> bytes:
    """Encode as JSON that is readable in any language, and valid UTF-8 also for lone surrogates."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode()


def _write_whole(path: Path, content: bytes) -> None:
    with replace_privately(path) as temporary:
        temporary.write_bytes(content)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportFormatError(f"{path} is not a text file in UTF-8") from error


def _from_document(text: str) -> list[Item]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"the file is not a JSON document: {error}") from error
    items = document.get("items") if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise ImportFormatError("the file has no list of items")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise ImportFormatError(f"item {number} is not a JSON object")
    declared = document.get("item_count", len(items)) if isinstance(document, dict) else len(items)
    if declared != len(items):
        raise ImportFormatError(f"the file declares {declared} items but contains {len(items)}")
    return items


def _from_lines(text: str) -> list[Item]:
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        item = decode_item(line)
        if item is None:
            raise ImportFormatError(f"line {number} is not a JSON object")
        items.append(item)
    return items


@dataclass
class RepairReport:
    """The removed items, by kind."""

    orphan_outputs: list[Item] = field(default_factory=list)
    unanswered_calls: list[Item] = field(default_factory=list)
    lone_reasoning: list[Item] = field(default_factory=list)
    atomic: bool = True
    """Whether the repair was one atomic step. If not, an item added by others meanwhile may be lost."""

    @property
    def removed(self) -> int:
        """The number of removed items."""
        return len(self.orphan_outputs) + len(self.unanswered_calls) + len(self.lone_reasoning)

    def __str__(self) -> str:
        if not self.removed:
            return "nothing to repair"
        return (
            f"removed {len(self.orphan_outputs)} outputs without a call, "
            f"{len(self.unanswered_calls)} calls without an output, "
            f"{len(self.lone_reasoning)} reasoning items without a following item"
        )


def repair_items(items: list[Item]) -> tuple[list[Item], RepairReport]:
    """Remove the items that make a model reject a history. Return the rest and a report.

    Calls of the newest turn stay: they may await approval.
    """
    report = RepairReport()
    while orphans := set(find_orphans(items)):
        for index in sorted(orphans):
            _list_for(items[index], report).append(items[index])
        items = [item for index, item in enumerate(items) if index not in orphans]
    return items, report


def _list_for(item: Item, report: RepairReport) -> list[Item]:
    if is_output(item):
        return report.orphan_outputs
    return report.lone_reasoning if is_reasoning(item) else report.unanswered_calls


async def repair(session: Session) -> RepairReport:
    """Remove the items of a stored history that make a model reject it. Return a report."""
    report = RepairReport()

    def mend(items: list[Item]) -> list[Item]:
        nonlocal report
        repaired, report = repair_items(items)
        return repaired

    report.atomic = await change_history(session, mend)
    return report
