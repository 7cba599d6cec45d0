"""Message trees of chat applications: their order, and the branches that lead to each end. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAIN = "main"


@dataclass(frozen=True)
class Layout:
    """The nodes of a tree, parents first, and the path of each branch through them."""

    order: list[str]
    paths: dict[str, list[str]]
    """The nodes from the first message to an end; the branch that was shown last is `main`."""
    problems: list[str] = field(default_factory=list)


def lay_out(parents: Mapping[str, str | None], current: str | None) -> Layout:
    """Lay out a tree, given the parent of each node. A node in a cycle, or without its parent, is a root."""
    problems: list[str] = []
    roots, children = _children(parents, problems)
    order = _walk(roots, children)
    if len(order) < len(parents):  # what no root leads to is a cycle
        problems.append(
            f"{len(parents) - len(order)} messages refer to each other in a circle: kept in their order"
        )
        known = set(order)
        for node in parents:
            if node not in known:
                found = _walk([node], children, known)
                order += found
                roots.append(node)
    parent_of = {child: node for node, each in children.items() for child in each}
    for root in roots:
        parent_of.pop(root, None)
    with_children = set(parent_of.values())
    ends = [node for node in order if node not in with_children]
    if current not in parents:
        if current is not None:
            problems.append("the message that was shown last is missing: the last branch is shown")
        current = ends[-1] if ends else None
    paths = {MAIN: _path(current, parent_of)} if current is not None else {}
    shown = set(paths.get(MAIN, ()))
    for end in ends:
        if end not in shown:
            paths[f"branch-{len(paths)}"] = _path(end, parent_of)
    return Layout(order, paths, problems)


def _children(
    parents: Mapping[str, str | None], problems: list[str]
) -> tuple[list[str], dict[str, list[str]]]:
    roots: list[str] = []
    children: dict[str, list[str]] = {}
    missing = 0
    for node, parent in parents.items():
        if parent is None or parent not in parents or parent == node:
            missing += parent is not None
            roots.append(node)
        else:
            children.setdefault(parent, []).append(node)
    if missing:
        problems.append(f"{missing} messages follow a message that is missing: they start a branch")
    return roots, children


def _walk(
    starts: Sequence[str], children: Mapping[str, Sequence[str]], known: set[str] | None = None
) -> list[str]:
    """The nodes from some on, each after its parent."""
    seen = set() if known is None else known
    order: list[str] = []
    waiting = list(reversed(starts))
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        waiting += reversed(children.get(node, ()))
    return order


def _path(end: str | None, parent_of: Mapping[str, str]) -> list[str]:
    path: list[str] = []
    seen: set[str] = set()
    while end is not None and end not in seen:
        seen.add(end)
        path.append(end)
        end = parent_of.get(end)
    return path[::-1]
