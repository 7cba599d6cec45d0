"""Parse the response of a model to values: lenient about the form, never about the content.

A list without its object, an object without its list, missing fields, and strings in place of entries are all
accepted. A response without a list of the right kind is an `UnusableAnswerError`.
"""

from collections.abc import Iterable, Mapping
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
)
from .json_text import FoundJSON, find_json

Operation = Literal["add", "end", "confirm"]

_MOST_ELEMENTS = 200  # a longer list is a sign of a model in a loop
_MOST_WRAPPERS = 3
_LONGEST_QUOTE = 300
_LISTS = ("memories", "candidates", "entries", "facts", "items", "notes", "results")
_TEXTS = ("text", "content_text", "content", "fact", "statement", "insight", "memory", "note", "description")
_TYPES = ("kind", "type", "content_type", "category")
_SOURCES = ("from", "evidence", "sources", "source", "message_ids", "message_id", "messages", "id")
_QUOTES = ("quotes", "quote", "words", "said")
_OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(("end", "ended", "ends", "delete", "remove", "retire"), "end"),
    **dict.fromkeys(("confirm", "confirmed", "confirms"), "confirm"),
}
_OPS = ("op", "operation", "action")
_MOST_QUOTES = 3
_DATES = ("date", "happened_on", "happened_at", "occurred_on", "valid_from", "since")
_ENDS = ("until", "valid_to", "ends_on", "expires_at", "expires")
_REPLACED = ("replaces", "replace", "supersedes", "updates", "targets", "ids", "ends", "confirms")
_DOUBTED = ("doubts", "doubtful", "shakes")
_GROUNDS = ("grounds", "ground", "based_on", "rests_on")


@dataclass(frozen=True)
class Draft:
    """An entry as the model wrote it. `cited` and `replaced` are indexes of messages and entries, from 0."""

    content_type: ContentType
    text: str = field(repr=False)
    cited: tuple[int, ...] = ()
    quote: str = field(default="", repr=False)
    confidence: float = 0.7
    date: str | None = None
    until: str | None = None
    expires_at: str | None = None
    replaced: tuple[int, ...] = ()
    doubted: tuple[int, ...] = ()
    """The indexes of the entries that it makes doubtful."""
    grounds: tuple[int, ...] = ()
    """The indexes of the entries that it is inferred from."""
    operation: Operation = "add"
    quotes: tuple[str, ...] = field(default=(), repr=False)
    """The further quotes."""
    kind: str = field(default="", compare=False)
    """The kind as the model wrote it, which may be one of the application."""


@dataclass(frozen=True)
class ParsedResponse:
    """The entries of a response."""

    drafts: tuple[Draft, ...]
    unreadable: int = 0
    """How many elements of the list could not be parsed."""
    too_many: int = 0
    """How many elements were not read, because the list is too long."""


# --- find the list ---


def parse_response(text: str) -> ParsedResponse:
    """Parse the response of a model."""
    elements = _elements_in(text)
    read = [_parse_draft(_fields_of(element)) for element in elements[:_MOST_ELEMENTS]]
    drafts = [draft for draft in read if draft is not None]
    if elements and not drafts:
        raise UnusableAnswerError("no entry in the response can be parsed")
    each_once = {draft.text: draft for draft in reversed(drafts) if draft.text}
    return ParsedResponse(
        tuple(each_once.values())[::-1], len(read) - len(drafts), max(len(elements) - _MOST_ELEMENTS, 0)
    )


def _elements_in(text: str) -> list[Any]:
    """The list in the object that holds it, or the list alone, or its elements one after another."""
    found = find_json(text)
    objects = [normalized(value) for value in found.values if isinstance(value, dict)]
    lists = [each for each in map(_opened, objects) if each is not None]
    if any(each != lists[0] for each in lists):
        raise UnusableAnswerError("the response has more than one answer")
    return lists[0] if lists else _loose_elements(found)


def _opened(fields: dict[str, Any]) -> list[Any] | None:
    """The list of an object, also if it is wrapped in another object."""
    for _ in range(_MOST_WRAPPERS):
        elements = _list_under(fields, _LISTS)
        elements = _grouped(fields) if elements is None else elements
        if elements is not None:
            return elements
        (inner,) = fields.values() if len(fields) == 1 else (None,)
        if not isinstance(inner, dict):
            return None
        fields = normalized(inner)
    return None


def _loose_elements(found: FoundJSON) -> list[Any]:
    """Elements outside of any expected object."""
    elements: list[Any] = []
    is_answer = False
    for value in found.values:
        if isinstance(value, list) and _is_list_of_elements(value, found.is_alone):
            elements, is_answer = elements + value, True
        elif isinstance(value, dict) and first_of(normalized(value), _TEXTS) is not None:
            elements, is_answer = [*elements, value], True
    if not is_answer:
        raise UnusableAnswerError("the response does not have the requested form")
    return elements


def _is_list_of_elements(value: list[Any], is_alone: bool) -> bool:
    """Whether a list holds elements. Strings count only if the list is the whole response."""
    kinds = (dict, str) if is_alone else (dict,)
    return not value or any(isinstance(each, kinds) for each in value)


def _grouped(fields: dict[str, Any]) -> list[Any] | None:
    """Entries in one list for each type."""
    groups = [(name, value) for name, value in fields.items() if parse_content_type(name) is not None]
    lists = [(name, value) for name, value in groups if isinstance(value, list)]
    if not lists:
        return None
    return [{"kind": name, **_fields_of(each)} for name, value in lists for each in value if each]


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


def _fields_of(element: object) -> dict[str, Any]:
    if isinstance(element, str):
        return {"text": element}
    return normalized(element) if isinstance(element, Mapping) else {}


def _parse_draft(fields: dict[str, Any]) -> Draft | None:
    text = next((fields[name] for name in _TEXTS if isinstance(fields.get(name), str)), None)
    if text is None:
        return None
    date, until = _first_date(fields, _DATES), _first_date(fields, _ENDS)
    quotes = _parse_quotes(first_of(fields, _QUOTES))
    kind = first_of(fields, _TYPES)
    return Draft(
        parse_content_type(kind) or ("event" if date else "profile"),
        clean_text(text),
        parse_places(first_of(fields, _SOURCES), "m"),
        quotes[0] if quotes else "",
        parse_confidence(fields.get("confidence")),
        date,
        None if _is_before(until, date) else until,
        _first_date(fields, ("expires_at", "expires")),
        parse_places(first_of(fields, _REPLACED), "e"),
        parse_places(first_of(fields, _DOUBTED), "e"),
        parse_places(first_of(fields, _GROUNDS), "e"),
        _OPERATIONS.get(str(first_of(fields, _OPS)).strip().lower(), "add"),
        quotes[1:],
        kind.strip().lower() if isinstance(kind, str) else "",
    )


def _first_date(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next(filter(None, (parse_date(fields.get(name)) for name in names)), None)


def _parse_quotes(value: object) -> tuple[str, ...]:
    """The quotes: one, or a list of them."""
    given = value if isinstance(value, list) else [value]
    quotes = [clean_text(each, _LONGEST_QUOTE) for each in given if isinstance(each, str)]
    return tuple(filter(None, quotes))[:_MOST_QUOTES]


def _is_before(end: str | None, start: str | None) -> bool:
    """Whether the end is certainly before the start. 2024 and 2024-05 cannot be compared."""
    if end is None or start is None:
        return False
    known = min(len(end), len(start))
    return end[:known] < start[:known]
