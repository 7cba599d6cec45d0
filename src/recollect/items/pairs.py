"""Items that belong together: a call and its output, a reasoning item and the items it led to.

Every function that shortens a history uses this module, so that no call is left without its output, no output
without its call, and no reasoning item without the item it led to.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from .shapes import (
    CALL_TYPE_OF_OUTPUT,
    Item,
    is_call,
    is_from_model,
    is_output,
    is_reasoning,
    is_user_message,
    turn_starts,
    type_of,
)

_ID_FIELDS = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}


@dataclass(frozen=True)
class Pairs:
    """Calls and outputs by index: the outputs of each call, and the items without a partner."""

    outputs_of: dict[int, list[int]] = field(default_factory=dict)
    open_calls: list[int] = field(default_factory=list)
    orphan_outputs: list[int] = field(default_factory=list)


def pair_calls(items: Sequence[Item]) -> Pairs:
    """Match each output with a call before it of its kind and `call_id`.

    That is the latest such call without an output, else the latest one of the same turn. An id may be reused
    in a later turn, and must not pair an output with a call of an earlier turn that has its output already.
    """
    open_calls: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    answered: dict[tuple[str, str], int] = {}
    outputs: defaultdict[int, list[int]] = defaultdict(list)
    orphans: list[int] = []
    for index, item in enumerate(items):
        kind = type_of(item)
        if is_user_message(item):
            answered.clear()
        elif is_call(item):
            open_calls[kind, call_key(item)].append(index)
        elif is_output(item):
            key = CALL_TYPE_OF_OUTPUT[kind], call_key(item)
            if open_calls[key]:
                answered[key] = open_calls[key].pop()
            if key in answered:
                outputs[answered[key]].append(index)
            else:
                orphans.append(index)
    return Pairs(dict(outputs), sorted(call for calls in open_calls.values() for call in calls), orphans)


def call_key(item: Item) -> str:
    """Return the id that a call and its output share: `call_id`, or another field for some types."""
    kind = type_of(item)
    key = item.get(_ID_FIELDS.get(kind, "call_id"))
    if key is None and kind == "local_shell_call_output":
        key = item.get("id")
    return key if isinstance(key, str) else ""


def reasoning_owners(items: Sequence[Item]) -> dict[int, list[int]]:
    """Return the items that each reasoning item led to: the model's next items, up to its next reasoning."""
    owners: dict[int, list[int]] = {}
    reasonings: list[int] = []
    for index, item in enumerate(items):
        if is_reasoning(item):
            if not index or not is_reasoning(items[index - 1]):
                reasonings = []
            reasonings.append(index)
            # Consecutive reasoning items lead to the same items, and share one list.
            owners[index] = owners[reasonings[0]] if len(reasonings) > 1 else []
        elif not is_from_model(item):
            reasonings = []
        elif reasonings:
            owners[reasonings[0]].append(index)
    return owners


def group_items(items: Sequence[Item]) -> list[int]:
    """Return the group number of each item. The items of a group must be kept or removed together."""
    parent = list(range(len(items)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    outputs, owners = pair_calls(items).outputs_of, reasoning_owners(items)
    # Consecutive reasoning items share their followers: all but the first need one link only.
    reasonings = [(index, led_to[: 1 if index - 1 in owners else None]) for index, led_to in owners.items()]
    links = [*outputs.items(), *reasonings, *_program_parts(items).items()]
    for one, others in links:
        for other in others:
            parent[find(other)] = find(one)
    return [find(index) for index in range(len(items))]


def _program_parts(items: Sequence[Item]) -> dict[int, list[int]]:
    """Return the calls and outputs of each program that the model wrote."""
    programs = {call_key(item): index for index, item in enumerate(items) if type_of(item) == "program"}
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        caller = item.get("caller")
        caller_id = caller.get("caller_id") if isinstance(caller, dict) else None
        if isinstance(caller_id, str) and caller_id in programs:
            parts[programs[caller_id]].append(index)
    return dict(parts)


def keep_whole_groups(items: Sequence[Item], kept: Collection[int]) -> list[Item]:
    """Return the items at the indexes `kept`, without those whose group would be split."""
    kept = set(kept)
    groups = group_items(items)
    torn = {group for index, group in enumerate(groups) if index not in kept}
    return [item for index, item in enumerate(items) if index in kept and groups[index] not in torn]


def newest_whole(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most the newest `count` items. A group that does not fit is omitted as a whole."""
    first = max(len(items) - max(count, 0), 0)
    return keep_whole_groups(items, range(first, len(items)))


def find_orphans(items: Sequence[Item], *, spare_newest_turn: bool = True) -> list[int]:
    """Return the indexes of the items that make a model reject a history.

    These are outputs without a call, calls without an output, and reasoning items with nothing after them.
    With `spare_newest_turn`, calls of the newest turn are not included: they may await approval.
    """
    pairs = pair_calls(items)
    starts = turn_starts(items)
    spared_from = (starts[-1] if starts else 0) if spare_newest_turn else len(items)
    orphans = {*pairs.orphan_outputs, *(call for call in pairs.open_calls if call < spared_from)}
    for reasoning, followers in reasoning_owners(items).items():
        if all(follower in orphans for follower in followers):
            orphans.add(reasoning)
    return sorted(orphans)
