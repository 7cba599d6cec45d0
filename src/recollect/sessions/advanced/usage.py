"""What a run cost, in requests and tokens, and which run it was."""

import json
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Self, TypeAlias
from weakref import WeakKeyDictionary, ref

COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")
DETAILS = ("input_tokens_details", "output_tokens_details")
Details: TypeAlias = dict[str, Any] | None


class TurnUsage(NamedTuple):
    """Requests and tokens in the order of `COUNTS`, and the details that a provider gives, as `DETAILS`."""

    counts: list[int]
    details: list[Details]

    @classmethod
    def of_run(cls, context: object) -> Self:
        """The usage that a run's context has counted; `ValueError` where there is none."""
        usage = getattr(context, "usage", None)
        if usage is None:
            raise ValueError("the result holds no usage: pass the result of a run")
        counts = [_count(getattr(usage, name, None)) for name in COUNTS]
        return cls(counts, [_fields(getattr(usage, name, None)) for name in DETAILS])

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> Self:
        """From the columns of the table; details that cannot be read are left out."""
        return cls([_count(value) for value in row[:4]], [_parsed(text) for text in row[4:]])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` has written."""
        return cls(*json.loads(text))

    def to_json(self) -> str:
        """As a text, to be compared with a later state of the same run."""
        return json.dumps(self)

    def columns(self) -> tuple[Any, ...]:
        """As the table holds it."""
        return (*self.counts, *(None if each is None else json.dumps(each) for each in self.details))

    def plus(self, other: "TurnUsage") -> "TurnUsage":
        """Both together."""
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        pairs = zip(self.details, other.details, strict=True)
        return TurnUsage(counts, [_added(mine, theirs) for mine, theirs in pairs])

    def since(self, earlier: "TurnUsage") -> "TurnUsage":
        """What was added since an earlier state of the same run."""
        counts = [max(0, now - then) for now, then in zip(self.counts, earlier.counts, strict=True)]
        pairs = zip(self.details, earlier.details, strict=True)
        return TurnUsage(counts, [_added(now, _negated(then)) for now, then in pairs])

    def as_dict(self) -> dict[str, Any]:
        """By the names of the columns."""
        return dict(zip(COUNTS + DETAILS, [*self.counts, *self.details], strict=True))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _fields(details: Any) -> Details:
    """The details as a dict, whatever kind of object a provider's client makes of them."""
    if details is None:
        return None
    dump = getattr(details, "model_dump", None)
    fields: Mapping[Any, Any] = details if isinstance(details, Mapping) else dump() if dump else vars(details)
    plain = (int, float, str, type(None))
    return {str(name): value for name, value in fields.items() if isinstance(value, plain)}


def _parsed(text: Any) -> Details:
    try:
        details = json.loads(text) if text else None
    except (TypeError, ValueError):
        return None
    return details if isinstance(details, dict) else None


def _added(mine: Details, theirs: Details) -> Details:
    """Numbers added up; what is no number as the first has it."""
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


# --- which run it was ---

_PLACEHOLDER_ID = "__fake_id__"  # the SDK's, for responses of models that give them no id
# By where an object is in memory, for as long as it is there: a response of a model has no hash.
_identities: dict[int, tuple[ref[Any], str]] = {}
_before: WeakKeyDictionary[object, TurnUsage] = WeakKeyDictionary()


def run_id_of(result: Any) -> str:
    """What tells a run from others: its first response's id, else that response or the context itself.

    A run goes by its context once that was counted while it ran. One that was interrupted and taken up
    again has the responses of both parts, and is the same run.
    """
    context = result.context_wrapper
    responses = getattr(result, "raw_responses", None) or [context]
    if id(context) in _identities:
        return identity_of(context)
    for response in responses:
        response_id = getattr(response, "response_id", None)
        if isinstance(response_id, str) and response_id not in ("", _PLACEHOLDER_ID):
            return f"response:{response_id}"
    return identity_of(responses[0])


def identity_of(thing: object) -> str:
    """A name for a run by its context or its first response, the same for as long as the object lives."""
    place = id(thing)
    if place not in _identities:
        forget = partial(_forget, place)
        _identities[place] = (ref(thing, forget), f"run:{uuid.uuid4().hex}")
    return _identities[place][1]


def _forget(place: int, _gone: object) -> None:
    _identities.pop(place, None)


def usage_before(context: Any) -> TurnUsage:
    """What a run had cost when it was first seen here; one that was interrupted and goes on has a past."""
    if context not in _before:
        _before[context] = TurnUsage.of_run(context)
    return _before[context]
