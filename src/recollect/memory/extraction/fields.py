"""Parse the fields of a response leniently: a number may be a string, a type may be in the plural."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ...models.text import to_valid_unicode
from ..entry import ContentType
from ..times import read_date

LONGEST_TEXT = 1000
"""The length limit of an entry, in characters."""
DEFAULT_CONFIDENCE = 0.7
INSTRUCTION_TYPE: ContentType = "instruction"
"""The type of an entry that says how the user wants the assistant to behave."""

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
    "instruction": INSTRUCTION_TYPE,
    "指示": INSTRUCTION_TYPE,
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
    """The fields with their names in lower case and underscores."""
    return {re.sub(r"[\s-]+", "_", str(name).strip().lower()): value for name, value in fields.items()}


def first_of(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of these fields that is set."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def clean_text(text: str, longest: int = LONGEST_TEXT) -> str:
    """The text on one line, without control characters, shortened to `longest` characters."""
    line = " ".join(_CONTROL.sub(" ", to_valid_unicode(text[: 4 * longest])).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def parse_content_type(value: object) -> ContentType | None:
    """Parse the type of an entry, in any case, in the plural, or in Chinese."""
    if not isinstance(value, str):
        return None
    name = unicodedata.normalize("NFKC", value).strip().lower().removesuffix("_content")
    return _TYPES.get(name) or _TYPES.get(name.removesuffix("s"))


def parse_number(value: object) -> float | None:
    """Parse a finite number, also from a string; `None` if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def parse_confidence(value: object) -> float:
    """Parse a confidence between 0 and 1, also from `80`, `"80%"` or `"high"`."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip().lower()
        if text in _WORDS:
            return _WORDS[text]
        percent = parse_number(text.removesuffix("%")) if text.endswith("%") else None
        if percent is not None:
            return _clamp(percent / 100)
    number = parse_number(value)
    if number is None:
        return DEFAULT_CONFIDENCE
    return _clamp(number / 100 if 10 <= number <= 100 else number)


def _clamp(number: float) -> float:
    return min(max(number, 0.0), 1.0)


def parse_date(value: object) -> str | None:
    """Parse a day, a month or a year; `None` for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    day = _DAY.fullmatch(value.strip())
    try:
        return read_date("date", day[1] if day else value.strip())
    except ValueError:
        return None


def parse_places(value: object, letter: str) -> tuple[int, ...]:
    """Parse short ids such as `m1`, `1` or `"m1, m2"` to distinct indexes from 0."""
    if isinstance(value, list):
        found = [
            place for each in value if not isinstance(each, list) for place in parse_places(each, letter)
        ]
    elif isinstance(value, bool) or not isinstance(value, int | str):
        found = []
    else:
        numbers = re.findall(rf"(?<![\w-]){letter}?([0-9]{{1,6}})(?![\w-])", str(value)[:1000].lower())
        found = [int(number) - 1 for number in numbers if int(number)]
    return tuple(dict.fromkeys(found))
