"""What a model has answered, as values: read forgivingly in its form, and never in its content.

A list without its object, an object without its list, missing fields, plain texts in place of entries: all
of that is read. What has no list of the right kind in it is an `UnusableAnswerError`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import UnusableAnswerError
from ..entry import ContentType
from .fields import (
    clean_text,
    confidence_of,
    content_type_of,
    date_of,
    first_of,
    normalized,
    places_in,
    score_of,
    slot_of,
)
from .json_text import Found, find_json

Action = Literal["add", "supersede", "none"]

_MOST_ELEMENTS = 500  # a model that gives more has lost its way
_MOST_WRAPPERS = 3
_LONGEST_PROSE = 4000
_LISTS = ("candidates", "entries", "memories", "facts", "items", "notes", "results")
_MIND_LISTS = ("entries", "candidates", "mind", "mind_content", "insights", "items", "results")
_DECISION_LISTS = ("decisions", "actions", "updates", "operations", "results", "items", "memory")
_TEXTS = ("text", "content_text", "content", "fact", "statement", "insight", "memory", "note", "description")
_TYPES = ("type", "content_type", "category", "kind")
_EVIDENCE = ("evidence", "sources", "source", "message_ids", "messages", "ids")
_PROSE = ("summary", "text", "insights", "modification", "description", "analysis")
_ACTIONS: dict[str, Action] = {
    **dict.fromkeys(("add", "new", "create", "insert", "新增", "添加", "增加"), "add"),
    **dict.fromkeys(("supersede", "update", "replace", "更新", "取代", "替换"), "supersede"),
    **dict.fromkeys(("none", "noop", "no_op", "skip", "ignore", "duplicate", "无", "忽略", "重复"), "none"),
}
_CANDIDATE_KEY = re.compile(r"c[0-9]{1,6}", re.IGNORECASE)


@dataclass(frozen=True)
class Draft:
    """An entry as the model wrote it: `cited` are places among the messages, from 0."""

    content_type: ContentType
    text: str = field(repr=False)
    cited: tuple[int, ...] = ()
    confidence: float = 0.7
    valid_from: str | None = None
    valid_to: str | None = None
    slot: str | None = None


@dataclass(frozen=True)
class Notes:
    """What the model wrote of the conversation as a whole, and its entries."""

    text: str = field(repr=False)
    drafts: tuple[Draft, ...]
    unreadable: int = 0
    """How many elements of the list could not be read."""
    score: float | None = None


@dataclass(frozen=True)
class Choice:
    """A decision as the model gave it, by places from 0."""

    candidate: int
    action: Action
    targets: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Envelope:
    fields: dict[str, Any]
    elements: list[Any]


_Open = Callable[[dict[str, Any]], list[Any] | None]


# --- the three stages ---


def parse_modification(text: str) -> Notes:
    """What the model found new, and the candidates."""
    envelope = _envelope_in(text, _candidates_of, _TEXTS)
    drafts, unreadable = _read_drafts(envelope.elements, None)
    return Notes(_prose_of(envelope), drafts, unreadable)


def parse_mind(text: str) -> Notes:
    """What the model makes of the user's mind; where it gives no entries, its insights are the entry."""
    envelope = _envelope_in(text, _insights_of, _TEXTS)
    drafts, unreadable = _read_drafts(envelope.elements, "mind")
    score = first_of(envelope.fields, ("confidence_score", "confidence", "score"))
    return Notes(_prose_of(envelope), drafts, unreadable, score_of(score))


def parse_update(text: str) -> tuple[Choice, ...]:
    """The decisions that can be read; at most one for each candidate."""
    envelope = _envelope_in(text, _decisions_of, ("candidate",))
    choices = [_read_choice(element) for element in envelope.elements]
    readable = [choice for choice in choices if choice is not None]
    if envelope.elements and not readable:
        raise UnusableAnswerError("no decision in the answer can be read")
    return tuple({choice.candidate: choice for choice in reversed(readable)}.values())[::-1]


# --- finding the list ---


def _envelope_in(text: str, open_fields: _Open, of_element: tuple[str, ...]) -> _Envelope:
    """The object that holds the list; or the list alone; or its elements, one after another."""
    found = find_json(text)
    objects = [normalized(value) for value in found.values if isinstance(value, dict)]
    envelopes = [each for each in (_opened(fields, open_fields) for fields in objects) if each is not None]
    if any(each != envelopes[0] for each in envelopes):
        raise UnusableAnswerError("there is more than one answer")
    envelope = envelopes[0] if envelopes else _Envelope({}, _loose_elements(found, of_element))
    if len(envelope.elements) > _MOST_ELEMENTS:
        raise UnusableAnswerError(f"there are more than {_MOST_ELEMENTS} elements in the answer")
    return envelope


def _opened(fields: dict[str, Any], open_fields: _Open) -> _Envelope | None:
    """The object with its list, also where it is wrapped in another."""
    for _ in range(_MOST_WRAPPERS):
        elements = open_fields(fields)
        if elements is not None:
            return _Envelope(fields, elements)
        (inner,) = fields.values() if len(fields) == 1 else (None,)
        if not isinstance(inner, dict):
            return None
        fields = normalized(inner)
    return None


def _loose_elements(found: Found, of_element: tuple[str, ...]) -> list[Any]:
    """Elements that stand in no object of ours."""
    elements: list[Any] = []
    is_answer = False
    for value in found.values:
        if isinstance(value, list) and _is_list_of_elements(value, found.is_alone):
            elements, is_answer = elements + value, True
        elif isinstance(value, dict) and first_of(normalized(value), of_element) is not None:
            elements, is_answer = [*elements, value], True
    if not is_answer:
        raise UnusableAnswerError("there is no answer of the form that was asked for")
    return elements


def _is_list_of_elements(value: list[Any], is_alone: bool) -> bool:
    """Texts count only where nothing stands around them: in prose, they may be anything."""
    kinds = (dict, str) if is_alone else (dict,)
    return not value or any(isinstance(each, kinds) for each in value)


def _candidates_of(fields: dict[str, Any]) -> list[Any] | None:
    listed = _list_under(fields, _LISTS)
    return _grouped(fields) if listed is None else listed


def _grouped(fields: dict[str, Any]) -> list[Any] | None:
    """Entries that stand in a list for each type."""
    groups = [(name, value) for name, value in fields.items() if content_type_of(name) is not None]
    lists = [(name, value) for name, value in groups if isinstance(value, list)]
    if not lists:
        return None
    return [{"type": name, **_fields_of(each)} for name, value in lists for each in value if each]


def _insights_of(fields: dict[str, Any]) -> list[Any] | None:
    listed = _list_under(fields, _MIND_LISTS)
    insights = fields.get("insights")
    if listed is None and isinstance(insights, str):
        return [insights] if insights.strip() else []
    return listed


def _decisions_of(fields: dict[str, Any]) -> list[Any] | None:
    if fields and all(map(_CANDIDATE_KEY.fullmatch, fields)):
        return [
            {"candidate": name, **(value if isinstance(value, dict) else {"action": value})}
            for name, value in fields.items()
        ]
    return _list_under(fields, _DECISION_LISTS)


def _list_under(fields: dict[str, Any], names: Iterable[str]) -> list[Any] | None:
    """The first list under one of the names; an object in its place is a list of one."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            return value
        if isinstance(value, dict) and value:
            return [value]
    return None


# --- reading its elements ---


def _read_drafts(elements: list[Any], only: ContentType | None) -> tuple[tuple[Draft, ...], int]:
    """The entries, each once and with a text, and how many elements are none."""
    read = [_read_draft(_fields_of(element), only) for element in elements]
    drafts = [draft for draft in read if draft is not None]
    if elements and not drafts:
        raise UnusableAnswerError("no entry in the answer can be read")
    each_once = {draft.text: draft for draft in reversed(drafts) if draft.text}
    return tuple(each_once.values())[::-1], len(read) - len(drafts)


def _fields_of(element: object) -> dict[str, Any]:
    if isinstance(element, str):
        return {"text": element}
    return normalized(element) if isinstance(element, Mapping) else {}


def _read_draft(fields: dict[str, Any], only: ContentType | None) -> Draft | None:
    text = next((fields[name] for name in _TEXTS if isinstance(fields.get(name), str)), None)
    if text is None:
        return None
    happened_on = date_of(first_of(fields, ("happened_on", "date", "happened_at", "occurred_on")))
    content_type = (
        only or content_type_of(first_of(fields, _TYPES)) or ("event" if happened_on else "profile")
    )
    valid_from = date_of(first_of(fields, ("valid_from", "since")))
    if content_type == "event":
        valid_from = happened_on or valid_from
    valid_to = date_of(first_of(fields, ("valid_to", "until")))
    return Draft(
        content_type,
        clean_text(text),
        places_in(first_of(fields, _EVIDENCE), "m"),
        confidence_of(fields.get("confidence")),
        valid_from,
        None if _is_before(valid_to, valid_from) else valid_to,
        slot_of(fields.get("slot")) if content_type == "profile" else None,
    )


def _is_before(end: str | None, start: str | None) -> bool:
    """Whether it surely ends before it starts: of 2024 and 2024-05, nobody knows."""
    if end is None or start is None:
        return False
    known = min(len(end), len(start))
    return end[:known] < start[:known]


def _read_choice(element: object) -> Choice | None:
    fields = _fields_of(element)
    action = _ACTIONS.get(str(first_of(fields, ("action", "decision", "event", "operation"))).strip().lower())
    given = first_of(fields, ("candidate", "candidate_id", "id"))
    places = places_in(given, "c")
    if action is None or len(places) != 1:
        return None
    targets = places_in(first_of(fields, ("targets", "target", "supersedes", "entries", "entry")), "e")
    return Choice(places[0], action, targets)


def _prose_of(envelope: _Envelope) -> str:
    """What is told beside the list, as one text."""
    given = first_of(envelope.fields, _PROSE)
    told = given if isinstance(given, list) else [given]
    texts = [clean_text(each, _LONGEST_PROSE) for each in told if isinstance(each, str)]
    return "\n".join(text for text in texts if text)[:_LONGEST_PROSE]
