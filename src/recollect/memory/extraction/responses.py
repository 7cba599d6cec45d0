"""Parse the responses of a model to values: lenient about the form, never about the content.

A list without its object, an object without its list, missing fields, and strings in place of entries are all
accepted. A response without a list of the right kind is an `UnusableAnswerError`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import UnusableAnswerError
from ..entry import ContentType
from .fields import (
    clean_text,
    first_of,
    normalized,
    parse_confidence,
    parse_content_type,
    parse_date,
    parse_places,
    parse_score,
    parse_slot,
)
from .json_text import FoundJSON, find_json

Action = Literal["add", "supersede", "none"]

_MOST_ELEMENTS = 500  # a longer list is a sign of a model in a loop
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
    """An entry as the model wrote it. `cited` are indexes of messages, from 0."""

    content_type: ContentType
    text: str = field(repr=False)
    cited: tuple[int, ...] = ()
    confidence: float = 0.7
    valid_from: str | None = None
    valid_to: str | None = None
    slot: str | None = None


@dataclass(frozen=True)
class ParsedEntries:
    """The text of a response about the whole conversation, and its entries."""

    text: str = field(repr=False)
    drafts: tuple[Draft, ...]
    unreadable: int = 0
    """How many elements of the list could not be parsed."""
    score: float | None = None


@dataclass(frozen=True)
class Choice:
    """A decision as the model wrote it, with indexes from 0."""

    candidate: int
    action: Action
    targets: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Envelope:
    fields: dict[str, Any]
    elements: list[Any]


_Open = Callable[[dict[str, Any]], list[Any] | None]


# --- the three stages ---


def parse_modification(text: str) -> ParsedEntries:
    """Parse the response of the modification stage."""
    envelope = _envelope_in(text, _candidates_of, _TEXTS)
    drafts, unreadable = _parse_drafts(envelope.elements, None)
    return ParsedEntries(_prose_of(envelope), drafts, unreadable)


def parse_mind(text: str) -> ParsedEntries:
    """Parse the response of the mind stage. Without entries, the insights become the entry."""
    envelope = _envelope_in(text, _insights_of, _TEXTS)
    drafts, unreadable = _parse_drafts(envelope.elements, "mind")
    score = first_of(envelope.fields, ("confidence_score", "confidence", "score"))
    return ParsedEntries(_prose_of(envelope), drafts, unreadable, parse_score(score))


def parse_update(text: str) -> tuple[Choice, ...]:
    """Parse the response of the update stage: at most one decision for each candidate."""
    envelope = _envelope_in(text, _decisions_of, ("candidate",))
    choices = [_parse_choice(element) for element in envelope.elements]
    readable = [choice for choice in choices if choice is not None]
    if envelope.elements and not readable:
        raise UnusableAnswerError("no decision in the response can be parsed")
    return tuple({choice.candidate: choice for choice in reversed(readable)}.values())[::-1]


# --- find the list ---


def _envelope_in(text: str, open_fields: _Open, of_element: tuple[str, ...]) -> _Envelope:
    """The object that holds the list, or the list alone, or its elements one after another."""
    found = find_json(text)
    objects = [normalized(value) for value in found.values if isinstance(value, dict)]
    envelopes = [each for each in (_opened(fields, open_fields) for fields in objects) if each is not None]
    if any(each != envelopes[0] for each in envelopes):
        raise UnusableAnswerError("the response has more than one answer")
    envelope = envelopes[0] if envelopes else _Envelope({}, _loose_elements(found, of_element))
    if len(envelope.elements) > _MOST_ELEMENTS:
        raise UnusableAnswerError(f"the response has more than {_MOST_ELEMENTS} elements")
    return envelope


def _opened(fields: dict[str, Any], open_fields: _Open) -> _Envelope | None:
    """The object with its list, also if it is wrapped in another object."""
    for _ in range(_MOST_WRAPPERS):
        elements = open_fields(fields)
        if elements is not None:
            return _Envelope(fields, elements)
        (inner,) = fields.values() if len(fields) == 1 else (None,)
        if not isinstance(inner, dict):
            return None
        fields = normalized(inner)
    return None


def _loose_elements(found: FoundJSON, of_element: tuple[str, ...]) -> list[Any]:
    """Elements outside of any expected object."""
    elements: list[Any] = []
    is_answer = False
    for value in found.values:
        if isinstance(value, list) and _is_list_of_elements(value, found.is_alone):
            elements, is_answer = elements + value, True
        elif isinstance(value, dict) and first_of(normalized(value), of_element) is not None:
            elements, is_answer = [*elements, value], True
    if not is_answer:
        raise UnusableAnswerError("the response does not have the requested form")
    return elements


def _is_list_of_elements(value: list[Any], is_alone: bool) -> bool:
    """Whether a list holds elements. Strings count only if the list is the whole response."""
    kinds = (dict, str) if is_alone else (dict,)
    return not value or any(isinstance(each, kinds) for each in value)


def _candidates_of(fields: dict[str, Any]) -> list[Any] | None:
    listed = _list_under(fields, _LISTS)
    return _grouped(fields) if listed is None else listed


def _grouped(fields: dict[str, Any]) -> list[Any] | None:
    """Entries in one list for each type."""
    groups = [(name, value) for name, value in fields.items() if parse_content_type(name) is not None]
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
    """The first list under one of the names. An object counts as a list of one."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            return value
        if isinstance(value, dict) and value:
            return [value]
    return None


# --- parse its elements ---


def _parse_drafts(elements: list[Any], only: ContentType | None) -> tuple[tuple[Draft, ...], int]:
    """The distinct entries with a text, and how many elements could not be parsed."""
    read = [_parse_draft(_fields_of(element), only) for element in elements]
    drafts = [draft for draft in read if draft is not None]
    if elements and not drafts:
        raise UnusableAnswerError("no entry in the response can be parsed")
    each_once = {draft.text: draft for draft in reversed(drafts) if draft.text}
    return tuple(each_once.values())[::-1], len(read) - len(drafts)


def _fields_of(element: object) -> dict[str, Any]:
    if isinstance(element, str):
        return {"text": element}
    return normalized(element) if isinstance(element, Mapping) else {}


def _parse_draft(fields: dict[str, Any], only: ContentType | None) -> Draft | None:
    text = next((fields[name] for name in _TEXTS if isinstance(fields.get(name), str)), None)
    if text is None:
        return None
    happened_on = parse_date(first_of(fields, ("happened_on", "date", "happened_at", "occurred_on")))
    content_type = (
        only or parse_content_type(first_of(fields, _TYPES)) or ("event" if happened_on else "profile")
    )
    valid_from = parse_date(first_of(fields, ("valid_from", "since")))
    if content_type == "event":
        valid_from = happened_on or valid_from
    valid_to = parse_date(first_of(fields, ("valid_to", "until")))
    return Draft(
        content_type,
        clean_text(text),
        parse_places(first_of(fields, _EVIDENCE), "m"),
        parse_confidence(fields.get("confidence")),
        valid_from,
        None if _is_before(valid_to, valid_from) else valid_to,
        parse_slot(fields.get("slot")) if content_type == "profile" else None,
    )


def _is_before(end: str | None, start: str | None) -> bool:
    """Whether the end is certainly before the start. 2024 and 2024-05 cannot be compared."""
    if end is None or start is None:
        return False
    known = min(len(end), len(start))
    return end[:known] < start[:known]


def _parse_choice(element: object) -> Choice | None:
    fields = _fields_of(element)
    action = _ACTIONS.get(str(first_of(fields, ("action", "decision", "event", "operation"))).strip().lower())
    places = parse_places(first_of(fields, ("candidate", "candidate_id", "id")), "c")
    if action is None or len(places) != 1:
        return None
    targets = parse_places(first_of(fields, ("targets", "target", "supersedes", "entries", "entry")), "e")
    return Choice(places[0], action, targets)


def _prose_of(envelope: _Envelope) -> str:
    """The text beside the list."""
    value = first_of(envelope.fields, _PROSE)
    values = value if isinstance(value, list) else [value]
    texts = [clean_text(each, _LONGEST_PROSE) for each in values if isinstance(each, str)]
    return "\n".join(text for text in texts if text)[:_LONGEST_PROSE]
