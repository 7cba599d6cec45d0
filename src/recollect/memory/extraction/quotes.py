"""Quote messages and entries for a prompt: one JSON object on each line.

In a quoted text every line break and every `<` is escaped. The data can therefore contain no marker of the
prompt and start no line of its own.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...items import estimate_text_tokens
from ...models.text import to_valid_unicode
from ..conversation import Message
from ..entry import Entry
from ..pipeline.stages import Candidate, Excerpt
from .grounding import numbered_messages

# Characters of a message. The first bound with which all messages fit is used.
_BOUNDS = (8000, 4000, 2000, 1000, 500, 250)
_LONGEST_EARLIER = 1000
_LONGEST_ENTRY = 1000
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Line separators, control characters that JSON does not escape, and the start of a marker.
_ESCAPED = re.compile("[<\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Quoted:
    """Quoted lines, and counts of what was shortened or left out."""

    lines: tuple[str, ...] = ()
    shortened: int = 0
    left_out: int = 0

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines) or "(nothing)"

    @property
    def tokens(self) -> int:
        """An estimate of their tokens."""
        return sum(map(_tokens, self.lines))


def quote_messages(excerpt: Excerpt, messages: Sequence[tuple[str, Message]], room: int) -> Quoted:
    """Quote numbered messages within `room` tokens.

    If they do not fit, long ones are shortened in the middle. If that is not enough, some are left out: first
    those that are not the user's, and the oldest first.
    """
    bound = _BOUNDS[0]
    lines = [_message_line(excerpt, number, message, bound) for number, message in messages]
    for bound in _BOUNDS:
        lines = [
            _message_line(excerpt, number, message, bound) if len(message.content) > bound else line
            for line, (number, message) in zip(lines, messages, strict=True)
        ]
        if sum(map(_tokens, lines)) <= room:
            break
    users_first = [(not excerpt.is_users(message), -place) for place, (_, message) in enumerate(messages)]
    newest_first = sorted(range(len(lines)), key=users_first.__getitem__)
    included = _fitting(lines, newest_first, room)
    shortened = sum(len(messages[index][1].content) > bound for index in included)
    return Quoted(tuple(lines[index] for index in included), shortened, len(lines) - len(included))


def quote_earlier(excerpt: Excerpt, room: int) -> Quoted:
    """Quote the newest of the earlier messages, without numbers, within `room` tokens."""
    lines: list[str] = []
    for message in reversed(excerpt.before):
        if message.role == "system":
            continue
        line = _message_line(excerpt, None, message, _LONGEST_EARLIER)
        room -= _tokens(line)
        if room < 0:
            break
        lines.append(line)
    return Quoted(tuple(reversed(lines)))


def number_messages(excerpt: Excerpt) -> list[tuple[str, Message]]:
    """The messages with their numbers, `m1`, `m2`, …, by which the model cites them."""
    return [(f"m{number}", message) for number, message in enumerate(numbered_messages(excerpt), 1)]


def quote_known(known: Iterable[Entry], room: int) -> Quoted:
    """Quote entries as `e1`, `e2`, …, as many as fit into `room` tokens."""
    return _quote_first([_entry_line(f"e{number}", entry) for number, entry in enumerate(known, 1)], room)


def quote_candidates(candidates: Iterable[Candidate], room: int) -> Quoted:
    """Quote candidates as `c1`, `c2`, …, as many as fit into `room` tokens."""
    return _quote_first([_entry_line(f"c{number}", each) for number, each in enumerate(candidates, 1)], room)


def _quote_first(all_lines: list[str], room: int) -> Quoted:
    included = _fitting(all_lines, range(len(all_lines)), room)
    lines = tuple(all_lines[index] for index in included)
    return Quoted(lines, left_out=len(all_lines) - len(included))


def _fitting(lines: Sequence[str], order: Iterable[int], room: int) -> list[int]:
    """The indexes of the lines that fit if they are taken in this order, sorted."""
    fitting = []
    for index in order:
        room -= _tokens(lines[index])
        if room < 0:
            break
        fitting.append(index)
    return sorted(fitting)


def _message_line(excerpt: Excerpt, number: str | None, message: Message, longest: int) -> str:
    return _line(
        id=number,
        role=excerpt.role_of(message),
        name=message.name,
        date=message.created_at.date().isoformat(),
        weekday=_WEEKDAYS[message.created_at.weekday()],
        text=shorten(message.content, longest),
    )


def _entry_line(number: str, entry: Entry | Candidate) -> str:
    return _line(
        id=number,
        type=entry.content_type,
        text=shorten(entry.text, _LONGEST_ENTRY),
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
    )


def _line(**fields: Any) -> str:
    present = {name: value for name, value in fields.items() if value is not None}
    line = json.dumps(present, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def shorten(text: str, longest: int) -> str:
    """The text, or if it is too long its beginning and end with a mark between them."""
    if len(text) <= longest:
        return to_valid_unicode(text)
    half = longest // 2
    left_out = len(text) - 2 * half
    return to_valid_unicode(f"{text[:half]} [… {left_out} characters left out …] {text[-half:]}")


def tokens_of_message(excerpt: Excerpt, message: Message) -> int:
    """An estimate of the tokens of a message in a prompt with enough room."""
    return 0 if message.role == "system" else _tokens(_message_line(excerpt, "m1000", message, _BOUNDS[0]))


def _tokens(line: str) -> int:
    return estimate_text_tokens(line) + 1
