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
    type_of,
)
from .turns import turn_starts


@dataclass(frozen=True)
class Pairs:
    """Calls and outputs by position: outputs of each call, and what has no partner."""

    outputs_of: dict[int, list[int]] = field(default_factory=dict)
    open_calls: list[int] = field(default_factory=list)
    orphan_outputs: list[int] = field(default_factory=list)


def pair_calls(items: Sequence[Item]) -> Pairs:
    """Match each output with the latest call before it of its kind and `call_id`."""
    latest: dict[tuple[str, str], int] = {}
    outputs: defaultdict[int, list[int]] = defaultdict(list)
    orphans: list[int] = []
    calls: list[int] = []
    for index, item in enumerate(items):
        kind = type_of(item)
        if is_call(item):
            calls.append(index)
            latest[kind, _call_key(item)] = index
        elif is_output(item):
            call = latest.get((CALL_TYPE_OF_OUTPUT[kind], _call_key(item)))
            if call is None:
                orphans.append(index)
            else:
                outputs[call].append(index)
    return Pairs(dict(outputs), [call for call in calls if call not in outputs], orphans)


def _call_key(item: Item) -> str:
    """The id that a call and its output share: `call_id`, except where the protocol names it otherwise."""
    kind = type_of(item)
    if kind == "mcp_approval_request":
        return str(item.get("id"))
    if kind == "mcp_approval_response":
        return str(item.get("approval_request_id"))
    if kind == "local_shell_call_output" and "call_id" not in item:
        return str(item.get("id"))
    return str(item.get("call_id"))


def reasoning_owners(items: Sequence[Item]) -> dict[int, list[int]]:
    """For each reasoning item the items it led to: those the model made next, up to its next thought."""
    owners: dict[int, list[int]] = {}
    followers: list[int] = []
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if is_reasoning(item):
            owners[index] = followers[::-1]
            # Thoughts in a row lead to the same items; a thought before other items ends their stretch.
            if index and not is_reasoning(items[index - 1]):
                followers = []
        elif is_from_model(item):
            followers.append(index)
        else:
            followers = []
    return owners


def group_items(items: Sequence[Item]) -> list[int]:
    """For each item the number of its group; the items of one group must be kept or dropped together."""
    parent = list(range(len(items)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    links = [*pair_calls(items).outputs_of.items(), *reasoning_owners(items).items()]
    for one, others in links:
        for other in others:
            parent[find(other)] = find(one)
    return [find(index) for index in range(len(items))]


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
