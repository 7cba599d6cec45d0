"""What belongs together: a call and its output, a reasoning item and what the model made of it.

Everything that shortens a history asks here, so that no call is left without its output, no output
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

_NAMED_OTHERWISE = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}


@dataclass(frozen=True)
class Pairs:
    """Calls and outputs by position: outputs of each call, and what has no partner."""

    outputs_of: dict[int, list[int]] = field(default_factory=dict)
    open_calls: list[int] = field(default_factory=list)
    orphan_outputs: list[int] = field(default_factory=list)


def pair_calls(items: Sequence[Item]) -> Pairs:
    """Match each output with a call before it of its kind and `call_id`.

    That is the latest such call without an output, else the latest of the same turn: an id may be used again
    in a later turn, and must not tie an output there to a call that was answered long before.
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
    """The id that a call and its output share: `call_id`, except where the protocol names it otherwise."""
    kind = type_of(item)
    key = item.get(_NAMED_OTHERWISE.get(kind, "call_id"))
    if key is None and kind == "local_shell_call_output":
        key = item.get("id")
    return key if isinstance(key, str) else ""


def reasoning_owners(items: Sequence[Item]) -> dict[int, list[int]]:
    """For each reasoning item the items it led to: those the model made next, up to its next thought."""
    owners: dict[int, list[int]] = {}
    thoughts: list[int] = []
    for index, item in enumerate(items):
        if is_reasoning(item):
            if not index or not is_reasoning(items[index - 1]):
                thoughts = []
            thoughts.append(index)
            # Thoughts in a row lead to the same items, and share one list of them.
            owners[index] = owners[thoughts[0]] if len(thoughts) > 1 else []
        elif not is_from_model(item):
            thoughts = []
        elif thoughts:
            owners[thoughts[0]].append(index)
    return owners


def group_items(items: Sequence[Item]) -> list[int]:
    """For each item the number of its group; the items of one group must be kept or dropped together."""
    parent = list(range(len(items)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    outputs, owners = pair_calls(items).outputs_of, reasoning_owners(items)
    # Thoughts in a row share their followers: one link to the first of these ties in each but the first.
    thoughts = [(index, led_to[: 1 if index - 1 in owners else None]) for index, led_to in owners.items()]
    links = [*outputs.items(), *thoughts, *_program_parts(items).items()]
    for one, others in links:
        for other in others:
            parent[find(other)] = find(one)
    return [find(index) for index in range(len(items))]


def _program_parts(items: Sequence[Item]) -> dict[int, list[int]]:
    """For each program that the model wrote, the calls and outputs it made."""
    programs = {call_key(item): index for index, item in enumerate(items) if type_of(item) == "program"}
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        caller = item.get("caller")
        caller_id = caller.get("caller_id") if isinstance(caller, dict) else None
        if isinstance(caller_id, str) and caller_id in programs:
            parts[programs[caller_id]].append(index)
    return dict(parts)


def keep_whole_groups(items: Sequence[Item], kept: Collection[int]) -> list[Item]:
    """The items at the positions `kept`, less those whose group would be torn by it."""
    kept = set(kept)
    groups = group_items(items)
    torn = {group for index, group in enumerate(groups) if index not in kept}
    return [item for index, item in enumerate(items) if index in kept and groups[index] not in torn]


def newest_whole(items: Sequence[Item], count: int) -> list[Item]:
    """The newest `count` items, or somewhat fewer: a group that does not fit is left out whole."""
    first = max(len(items) - max(count, 0), 0)
    return keep_whole_groups(items, range(first, len(items)))


def find_orphans(items: Sequence[Item], *, spare_newest_turn: bool = True) -> list[int]:
    """The positions of what makes a model refuse a history.

    These are outputs without their call, calls without an output (unless in the newest turn, where they
    may await approval, and that is to be spared) and reasoning items with nothing after them.
    """
    pairs = pair_calls(items)
    starts = turn_starts(items)
    spared_from = (starts[-1] if starts else 0) if spare_newest_turn else len(items)
    orphans = {*pairs.orphan_outputs, *(call for call in pairs.open_calls if call < spared_from)}
    for reasoning, followers in reasoning_owners(items).items():
        if all(follower in orphans for follower in followers):
            orphans.add(reasoning)
    return sorted(orphans)
