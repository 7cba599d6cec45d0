"""The checkpoints of a thread as branches: pure functions.

A checkpoint continues the branch of its parent, unless an earlier one did so already: then it begins a fork.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAIN = "main"


class Node(NamedTuple):
    """A checkpoint, and the one before it."""

    checkpoint_id: str
    parent_id: str | None


@dataclass
class Branch:
    """A line of checkpoints."""

    name: str
    from_branch: str | None
    """The branch that has the step before its first own one; `None` if there is none."""
    before: Sequence[str]
    """The checkpoints before its own ones, the oldest first."""
    own: list[str] = field(default_factory=list)
    is_current: bool = False
    """Whether it has the newest checkpoint, from which the thread goes on."""

    @property
    def steps(self) -> list[str]:
        """All its checkpoints, the oldest first."""
        return [*self.before, *self.own]


def find_branches(nodes: Sequence[Node]) -> list[Branch]:
    """The branches of a thread, whose checkpoints are given in the order of their ids."""
    found: list[Branch] = []
    branch_of: dict[str, Branch] = {}
    for node in nodes:
        parent = branch_of.get(node.parent_id or "")
        if parent is None or parent.own[-1] != node.parent_id:
            parent = _fork(found, parent, node)
            found.append(parent)
        parent.own.append(node.checkpoint_id)
        branch_of[node.checkpoint_id] = parent
    if nodes:
        branch_of[nodes[-1].checkpoint_id].is_current = True
    return found


def _fork(found: Sequence[Branch], parent: Branch | None, node: Node) -> Branch:
    name = f"fork-{len(found)}" if found else MAIN
    if parent is None:  # the first step; or one whose parent was pruned
        return Branch(name, None, ())
    end = parent.own.index(node.parent_id or "") + 1
    return Branch(name, parent.name, (*parent.before, *parent.own[:end]))
