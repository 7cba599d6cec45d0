"""Mending a history that a model refuses, so that one bad item does not poison a session for good."""

from dataclasses import dataclass, field

from ..items import Item, find_orphans, is_output, is_reasoning
from .changing import change_history
from .protocol import Session


@dataclass
class RepairReport:
    """What was removed, by kind."""

    orphan_outputs: list[Item] = field(default_factory=list)
    unanswered_calls: list[Item] = field(default_factory=list)
    lone_reasoning: list[Item] = field(default_factory=list)
    atomic: bool = True
    """Whether the repair was one atomic step. If not, an item that others added meanwhile may be lost."""

    @property
    def removed(self) -> int:
        """How many items were removed."""
        return len(self.orphan_outputs) + len(self.unanswered_calls) + len(self.lone_reasoning)

    def __str__(self) -> str:
        if not self.removed:
            return "nothing to repair"
        return (
            f"removed {len(self.orphan_outputs)} outputs without a call, "
            f"{len(self.unanswered_calls)} calls without an output, "
            f"{len(self.lone_reasoning)} reasoning items without what they led to"
        )


def repair_items(items: list[Item]) -> tuple[list[Item], RepairReport]:
    """The items without what makes a model refuse them, and a report of what that was.

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
    """Remove from a stored history what makes a model refuse it, and say what it was."""
    report = RepairReport()

    def mend(items: list[Item]) -> list[Item]:
        nonlocal report
        mended, report = repair_items(items)
        return mended

    report.atomic = await change_history(session, mend)
    return report
