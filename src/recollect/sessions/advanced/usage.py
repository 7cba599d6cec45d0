"""The cost of a run in requests and tokens, and the identity of a run.

The identity is an id of our own, attached to the context of the run. Response ids do not identify a run:
gateways and test models repeat them, and some models have none. A run that is resumed from a saved state has
a new context. It is identified by its turn and the tokens of each request.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

from ...errors import RecollectError
from ...ids import new_hex

COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")
DETAILS = ("input_tokens_details", "output_tokens_details")
Details: TypeAlias = dict[str, Any] | None


class TurnUsage(NamedTuple):
    """Requests and tokens in the order of `COUNTS`, and the provider's details in the order of `DETAILS`."""

    counts: list[int]
    details: list[Details]

    @classmethod
    def of_run(cls, context: object) -> Self:
        """Read the usage of a run's context. Raise `ValueError` if there is none."""
        usage = getattr(context, "usage", None)
        if usage is None:
            raise ValueError("the result has no usage: pass the result of a run")
        counts = [_count(getattr(usage, name, None)) for name in COUNTS]
        return cls(counts, [_fields(getattr(usage, name, None)) for name in DETAILS])

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> Self:
        """Read the columns of the table. Invalid details are ignored."""
        return cls([_count(value) for value in row[:4]], [_parsed(text) for text in row[4:]])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`."""
        return cls(*json.loads(text))

    def to_json(self) -> str:
        """Serialize it, to compare it later with a newer state of the same run."""
        return json.dumps(self)

    def columns(self) -> tuple[Any, ...]:
        """Return the values of the table's columns."""
        return (*self.counts, *(None if each is None else json.dumps(each) for each in self.details))

    def plus(self, other: "TurnUsage") -> "TurnUsage":
        """Return the sum of both."""
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        pairs = zip(self.details, other.details, strict=True)
        return TurnUsage(counts, [_added(mine, theirs) for mine, theirs in pairs])

    def since(self, earlier: "TurnUsage") -> "TurnUsage":
        """Return the difference to an earlier state of the same run."""
        counts = [max(0, now - then) for now, then in zip(self.counts, earlier.counts, strict=True)]
        pairs = zip(self.details, earlier.details, strict=True)
        return TurnUsage(counts, [_added(now, _negated(then)) for now, then in pairs])

    def as_dict(self) -> dict[str, Any]:
        """Return the values by column name."""
        return dict(zip(COUNTS + DETAILS, [*self.counts, *self.details], strict=True))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _fields(details: Any) -> Details:
    """Convert details into a dict, from a mapping, a pydantic model, or the attributes of an object."""
    if details is None:
        return None
    dump = getattr(details, "model_dump", None)
    dumped = dump() if callable(dump) else None
    candidates = (details, dumped, getattr(details, "__dict__", None))
    fields = next((each for each in candidates if isinstance(each, Mapping)), {})
    plain = (int, float, str, type(None))
    return {str(name): value for name, value in fields.items() if isinstance(value, plain)}


def _parsed(text: Any) -> Details:
    try:
        details = json.loads(text) if text else None
    except (TypeError, ValueError):
        return None
    return details if isinstance(details, dict) else None


def _added(mine: Details, theirs: Details) -> Details:
    """Add the numbers. Other values are taken from the first."""
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    sums = {
        name: value + theirs[name]
        for name, value in mine.items()
        if isinstance(value, int | float) and isinstance(theirs.get(name), int | float)
    }
    return theirs | mine | sums


def _negated(details: Details) -> Details:
    if details is None:
        return None
    return {name: -value for name, value in details.items() if isinstance(value, int | float)}


NOTHING = TurnUsage([0] * len(COUNTS), [None] * len(DETAILS))


_RUN_ATTRIBUTE = "_recollect_run"
_RESPONSE_ATTRIBUTE = "_recollect_response"


@dataclass(frozen=True)
class RunMark:
    """The identity of a run, attached to its context."""

    run_id: str
    counter: object
    """The usage object of the context. The copy of a context in a saved state has another one."""
    before: TurnUsage
    """The usage when the run was first seen. It is not zero for a resumed run."""


def mark_run(*holders: object) -> RunMark | None:
    """Return the mark of a run. A new mark is attached to the first of these objects that accepts attributes.

    The first object is the context of the run. Returns `None` if no object accepts attributes.
    """
    context = holders[0]
    counter = getattr(context, "usage", None)
    for holder in holders:
        mark = getattr(holder, _RUN_ATTRIBUTE, None)
        if isinstance(mark, RunMark) and mark.counter is counter:
            return mark
    mark = RunMark(new_hex(), counter, TurnUsage.of_run(context))
    return mark if any(_attach(holder, _RUN_ATTRIBUTE, mark) for holder in holders) else None


def run_key(result: Any) -> tuple[str, str]:
    """Return ids for a run and for its last response. Runs that share a context differ in the second."""
    mark = mark_run(result.context_wrapper, result)
    responses = getattr(result, "raw_responses", None)
    last = responses[-1] if isinstance(responses, Sequence) and responses else None
    return mark.run_id if mark else "", "" if last is None else _response_id(last)


def _response_id(response: object) -> str:
    known = getattr(response, _RESPONSE_ATTRIBUTE, None)
    if isinstance(known, str):
        return known
    made = new_hex()
    return made if _attach(response, _RESPONSE_ATTRIBUTE, made) else ""


def _attach(holder: object, name: str, value: object) -> bool:
    """Set an attribute. Return `False` if the object accepts none, for example because of slots."""
    try:
        setattr(holder, name, value)
    except (AttributeError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class RunProgress:
    """The cost of a run so far, and the data that identifies the run."""

    usage: TurnUsage
    run_id: str | None
    """`None` if no object accepts a mark: such a run is identified by its turn."""
    before: TurnUsage = NOTHING
    """The part of the usage that is not counted: the cost when the run was first seen."""
    requests: tuple[tuple[int, ...], ...] = ()
    """The tokens of each request."""
    is_new: bool = False
    """Whether the run was seen before its first request, so that no saved state precedes it."""
    is_interrupted: bool = False
    """Whether the run waits for approval, so that it may go on from a saved state."""

    @classmethod
    def of_result(cls, result: Any) -> Self:
        """Read the progress of a finished or interrupted run. Raise `ValueError` if it has no usage."""
        context = getattr(result, "context_wrapper", None)
        usage = TurnUsage.of_run(context)
        mark = mark_run(context, result)
        interruptions = getattr(result, "interruptions", None)
        return cls(
            usage,
            run_id=mark.run_id if mark else None,
            requests=_tokens_by_request(context),
            is_new=mark is not None and not any(mark.before.counts),
            is_interrupted=isinstance(interruptions, Sequence) and bool(interruptions),
        )

    @classmethod
    def of_context(cls, context: Any) -> Self:
        """Read the progress of a running run, without its cost before it was first seen."""
        mark = mark_run(context)
        usage = TurnUsage.of_run(context)
        return cls(usage, mark.run_id, mark.before, is_new=True) if mark else cls(usage, None)

    def state_id(self, turn: int) -> str:
        """Return the id of an interrupted run, in the turn that starts at this item."""
        return _state_id(turn, self.requests)

    def earlier_state_ids(self, turn: int) -> Iterator[str]:
        """Yield the ids that earlier parts of this run may have, the longest part first."""
        if self.is_new:
            return
        for length in range(len(self.requests), 0, -1):
            yield _state_id(turn, self.requests[:length])
        if not self.requests:
            yield _state_id(turn, ())


def _tokens_by_request(context: Any) -> tuple[tuple[int, ...], ...]:
    entries = getattr(context.usage, "request_usage_entries", None)
    names = ("input_tokens", "output_tokens", "total_tokens")
    known = entries if isinstance(entries, Sequence) else ()
    counts = (tuple(getattr(entry, name, None) for name in names) for entry in known)
    return tuple(tuple(value if isinstance(value, int) else 0 for value in each) for each in counts)


def _state_id(turn: int, requests: tuple[tuple[int, ...], ...]) -> str:
    digest = hashlib.sha256(json.dumps(requests).encode()).hexdigest()
    return f"state:{turn}:{digest[:32]}"


async def store_or_log(
    count_run: Callable[[Any], Awaitable[None]], result: Any, logger: logging.Logger
) -> None:
    """Count a run. As in the Agents SDK, nothing happens without usage, and a failure is only logged."""
    context = getattr(result, "context_wrapper", None)
    if context is not None and getattr(context, "usage", context) is None:
        return
    try:
        await count_run(result)
    except (RecollectError, OSError, ValueError) as error:
        logger.error("the usage of a run is not stored (%s)", type(error).__name__)
