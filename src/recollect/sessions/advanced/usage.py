"""The cost of a run, in requests and tokens."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Self, TypeAlias

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
    """The details as a dict: a mapping, a model of a provider's client, or the attributes of an object."""
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
