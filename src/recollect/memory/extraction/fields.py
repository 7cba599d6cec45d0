"""The fields of an answer, in whatever form a model gave them: a number as text, a type in the plural."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ...models.text import to_valid_unicode
from ..entry import ContentType
from ..times import read_date

LONGEST_TEXT = 1000
"""Characters of an entry."""
DEFAULT_CONFIDENCE = 0.7

_LONGEST_SLOT = 40
_TYPES: dict[str, ContentType] = {
    "profile": "profile",
    "档案": "profile",
    "個人資料": "profile",
    "个人资料": "profile",
    "画像": "profile",
    "fact": "profile",
    "event": "event",
    "事件": "event",
    "mind": "mind",
    "心理": "mind",
    "insight": "mind",
}
_WORDS = {
    **dict.fromkeys(("very high", "certain", "非常高"), 0.95),
    **dict.fromkeys(("high", "高"), 0.9),
    **dict.fromkeys(("medium", "moderate", "中", "中等"), 0.6),
    **dict.fromkeys(("low", "低"), 0.3),
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})[T ].*", re.DOTALL)


def normalized(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields under their names in lower case."""
    return {re.sub(r"[\s-]+", "_", str(name).strip().lower()): value for name, value in fields.items()}


def first_of(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that is there."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def clean_text(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text on one line, without what no database holds, and not too long."""
    line = " ".join(_CONTROL.sub(" ", to_valid_unicode(text[: 4 * longest])).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def content_type_of(given: object) -> ContentType | None:
    """The type that a name stands for: in any case, in the plural, in Chinese."""
    if not isinstance(given, str):
        return None
    name = unicodedata.normalize("NFKC", given).strip().lower().removesuffix("_content")
    return _TYPES.get(name) or _TYPES.get(name.removesuffix("s"))


def number_of(given: object) -> float | None:
    """A number, also one that is told as text."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def confidence_of(given: object) -> float:
    """A confidence between 0 and 1, also from `80`, `"80%"` or `"high"`."""
    if isinstance(given, str):
        text = unicodedata.normalize("NFKC", given).strip().lower()
        if text in _WORDS:
            return _WORDS[text]
        percent = number_of(text.removesuffix("%")) if text.endswith("%") else None
        if percent is not None:
            return _within_bounds(percent / 100)
    number = number_of(given)
    if number is None:
        return DEFAULT_CONFIDENCE
    return _within_bounds(number / 100 if 10 <= number <= 100 else number)


def _within_bounds(number: float) -> float:
    return min(max(number, 0.0), 1.0)


def score_of(given: object) -> float | None:
    """A score as the model gave it, if it is one between 0 and 1."""
    number = number_of(given)
    return number if number is not None and 0 <= number <= 1 else None


def date_of(given: object) -> str | None:
    """A day, a month or a year; what is none is left out."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str):
        return None
    day = _DAY.fullmatch(given.strip())
    try:
        return read_date("date", day[1] if day else given.strip())
    except ValueError:
        return None


def slot_of(given: object) -> str | None:
    """What a note is about, in one word or two."""
    if not isinstance(given, str):
        return None
    slot = re.sub(r"[\s-]+", "_", clean_text(given).lower())
    is_none = slot in ("", "none", "null", "n/a", "other")
    return None if is_none or len(slot) > _LONGEST_SLOT else slot


def places_in(given: object, letter: str) -> tuple[int, ...]:
    """Places, from 0, that short numbers such as `m1`, `1` or `"m1, m2"` stand for, each once."""
    if isinstance(given, list):
        found = [place for each in given if not isinstance(each, list) for place in places_in(each, letter)]
    elif isinstance(given, bool) or not isinstance(given, int | str):
        found = []
    else:
        numbers = re.findall(rf"(?<![\w-]){letter}?([0-9]{{1,6}})(?![\w-])", str(given)[:1000].lower())
        found = [int(number) - 1 for number in numbers if int(number)]
    return tuple(dict.fromkeys(found))
