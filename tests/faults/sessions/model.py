"""What a session must hold that one client at a time works on: a few histories that are possible.

There is one, unless the outcome of a call is not known; then there are those with it and without it, until a
read tells which it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .items import batch, revised, starts_turn
from .journal import Call, Ended, Outcome

MAIN = "main"
REFUSED = "[refused]"
_MOST = 64  # histories that are thought possible at a time


@dataclass(frozen=True)
class History:
    """What a session shows: the codes of the items of each branch, which is current, and its title."""

    branches: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {MAIN: ()})
    current: str = MAIN
    title: str | None = None

    @property
    def items(self) -> tuple[str, ...]:
        """Those of the current branch."""
        return self.branches[self.current]

    def with_items(self, items: Iterable[str]) -> "History":
        """The same with other items in the current branch."""
        return replace(self, branches={**self.branches, self.current: tuple(items)})


def perform(history: History, call: Call) -> tuple[History, Any]:
    """What becomes of a history by a call, and what the call returns."""
    arguments = call.arguments
    match call.kind:
        case "add" | "add_once":
            return history.with_items((*history.items, *_new(call, arguments[0]))), None
        case "pop":
            last = history.items[-1] if history.items else None
            return history.with_items(history.items[:-1]), last
        case "clear":
            return History(), None  # all branches and the title go with it
        case "replace":
            return history.with_items(_new(call, arguments[0])), None
        case "transform":
            dropped, size = arguments
            return history.with_items((*history.items[dropped:], *_new(call, size))), None
        case "revise":
            return _revised(history, call.number), None
        case "describe":
            return replace(history, title=f"{call.writer}.{call.number}"), None
        case _:
            return _read_or_branch(history, call)


def _read_or_branch(history: History, call: Call) -> tuple[History, Any]:
    arguments = call.arguments
    match call.kind:
        case "get":
            limit = arguments[0]
            return history, list(history.items if limit is None else history.items[-limit:])
        case "read_forwards" | "read_backwards":
            return history, list(history.items)
        case "title":
            return history, history.title
        case "clear_branch":
            return history.with_items(()), None
        case "branch":
            return _branched(history, f"b{call.number}", arguments[0])
        case "switch":
            known = arguments[0] in history.branches
            return (replace(history, current=arguments[0]), None) if known else (history, REFUSED)
        case "delete":
            return _deleted(history, *arguments)
    raise ValueError(f"an unknown call: {call.kind}")


def _new(call: Call, size: int) -> list[str]:
    return batch(call.writer, call.number, size)


def _revised(history: History, call: int) -> History:
    changed = {
        name: tuple(new for code in items if (new := revised(code, call)) is not None)
        for name, items in history.branches.items()
    }
    return replace(history, branches=changed)


def _branched(history: History, name: str, code: str) -> tuple[History, Any]:
    """A branch of what comes before the item of a code, which may have been revised since."""
    start = next(
        (n for n, item in enumerate(history.items) if item.partition("~")[0] == code and starts_turn(item)),
        None,
    )
    if start is None:
        return history, REFUSED
    return replace(history, branches={**history.branches, name: history.items[:start]}, current=name), name


def _deleted(history: History, name: str, force: bool) -> tuple[History, Any]:
    if name == MAIN or name not in history.branches or (name == history.current and not force):
        return history, REFUSED
    left = {branch: items for branch, items in history.branches.items() if branch != name}
    return replace(history, branches=left, current=MAIN if name == history.current else history.current), None


class Follower:
    """The histories of one session that agree with everything that was seen of it."""

    def __init__(self, history: History | None = None) -> None:
        self.possible = [history or History()]

    def follow(self, ended: Ended) -> str | None:
        """Take in how a call ended; in words what cannot be, where no possible history allows for it."""
        if ended.outcome is Outcome.FAILED:
            return None
        after = [self._after(history, ended) for history in self.possible]
        agreeing = _distinct([history for histories in after for history in histories])
        if not agreeing:
            expected = [_shown(perform(history, ended.call)[1]) for history in self.possible]
            return f"{_told(ended)} {_shown(ended.value)}, and it must be {' or '.join(expected)}"
        self.possible = agreeing[:_MOST]
        return None

    def _after(self, history: History, ended: Ended) -> list[History]:
        after, result = perform(history, ended.call)
        match ended.outcome:
            case Outcome.UNKNOWN:
                return [history, after]
            case Outcome.REFUSED:
                return [history] if result == REFUSED else []
            case _:
                return [after] if result == ended.value else []

    def meet(self, found: History) -> str | None:
        """Take in what is stored in the end; in words what is wrong, where it is no possible history."""
        agreeing, expected = found in self.possible, self.possible
        self.possible = [found]
        if agreeing:
            return None
        return f"holds {_shown_history(found)}, and it must be {' or '.join(map(_shown_history, expected))}"


def _distinct(histories: list[History]) -> list[History]:
    found: list[History] = []
    for history in histories:
        if history not in found:
            found.append(history)
    return found


def _told(ended: Ended) -> str:
    call = ended.call
    return f"call {call.number} of {call.writer}, {call.kind}{call.arguments}, was {ended.outcome} with"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 12:
        return f"{len(value)} items, the last {list(value[-12:])}"
    return str(value)


def _shown_history(history: History) -> str:
    branches = ", ".join(f"{name}: {_shown(items)}" for name, items in history.branches.items())
    return f"({branches}; current {history.current}; title {history.title})"
