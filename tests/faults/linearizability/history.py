"""What callers did to a session and saw of it, with the times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["add", "pop", "get", "clear", "replace", "keep"]
Values: TypeAlias = tuple[int, ...]
"""What a session holds, oldest first. Each value is written once in a history, so it tells who wrote it."""

WRITES = frozenset({"add", "replace"})


@dataclass(frozen=True, slots=True)
class Operation:
    """A call, from when it was made until it was answered.

    | kind | written | limit | seen |
    |---|---|---|---|
    | `add`, `replace` | the items | | |
    | `get` | | the newest so many, or all | what it returned |
    | `pop` | | | one item, or none |
    | `clear` | | | |
    | `keep` (a rewriting that keeps the newest) | | so many | the history that it was given |
    """

    kind: Kind
    invoked: int
    """Nanoseconds of a clock that all callers share."""
    returned: int | None
    """`None` where nobody knows whether it has happened, and when: it failed, or was cancelled."""
    written: Values = ()
    limit: int | None = None
    seen: Values = ()
    caller: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it was answered."""
        return self.returned is not None


def step(operation: Operation, held: Values) -> Values | None:
    """What a session holds after an operation; `None` if one that holds this would not answer so."""
    match operation.kind:
        case "add":
            return held + operation.written
        case "replace":
            return operation.written
        case "clear":
            return ()
        case "pop":
            return held[:-1] if not operation.is_known or operation.seen == held[-1:] else None
        case "get":
            fits = not operation.is_known or operation.seen == newest(held, operation.limit)
            return held if fits else None
        case "keep":
            fits = not operation.is_known or operation.seen == held
            return newest(held, operation.limit) if fits else None


def newest(held: Values, limit: int | None) -> Values:
    """The newest so many, or all."""
    return held if limit is None else held[max(len(held) - limit, 0) :]


def to_wire(history: Sequence[Operation]) -> list[list[Any]]:
    """A history as JSON can hold it."""
    return [
        [each.kind, each.invoked, each.returned, each.written, each.limit, each.seen, each.caller]
        for each in history
    ]


def from_wire(told: Sequence[Sequence[Any]]) -> list[Operation]:
    """The history that `to_wire` told."""
    return [
        Operation(kind, invoked, returned, tuple(written), limit, tuple(seen), caller)
        for kind, invoked, returned, written, limit, seen, caller in told
    ]
