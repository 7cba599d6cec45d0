"""What a model is given to read, quoted: a JSON object on each line, and nothing that could end the quote.

In a quoted text, every line break is escaped, and so is every `<`: what stands between two marks can neither
hold a mark nor begin a line of its own.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ...items import estimate_text_tokens
from ...models.text import to_valid_unicode
from ..conversation import Message
from ..entry import Entry
from ..pipeline.stages import Candidate, Excerpt
from .grounding import numbered_messages

_BOUNDS = (8000, 4000, 2000, 1000, 500, 250)  # characters of a message, the first that lets all of them fit
_LONGEST_EARLIER = 1000
_LONGEST_ENTRY = 1000
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# What ends a line for some reader, what JSON leaves as it is although nobody sees it, and what opens a mark.
_ESCAPED = re.compile("[<\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Quoted:
    """Lines for a prompt, and what is not in them."""

    lines: tuple[str, ...] = ()
    shortened: int = 0
    left_out: int = 0

    @property
    def text(self) -> str:
        """The lines as a model reads them."""
        return "\n".join(self.lines) or "(nothing)"

    @property
    def tokens(self) -> int:
        """About how many tokens they are."""
        return sum(map(_tokens, self.lines))


def quote_messages(excerpt: Excerpt, messages: Sequence[tuple[str, Message]], room: int) -> Quoted:
    """Numbered messages within so many tokens.

    Where there are too many, long ones are shortened in the middle. If that is not enough, some are left out:
    first those that are not the user's, and of each the oldest first.
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
    kept = _fitting(lines, newest_first, room)
    shortened = sum(len(messages[place][1].content) > bound for place in kept)
    return Quoted(tuple(lines[place] for place in kept), shortened, len(lines) - len(kept))


def quote_earlier(excerpt: Excerpt, room: int) -> Quoted:
    """The newest of what was said before, without numbers, within so many tokens."""
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
    """The messages with the numbers by which a model names them."""
    return [(f"m{number}", message) for number, message in enumerate(numbered_messages(excerpt), 1)]


def quote_known(known: Iterable[Entry], room: int) -> Quoted:
    """Entries as `e1`, `e2`, …, the first ones within so many tokens."""
    return _quote_first((_entry_line(f"e{number}", entry) for number, entry in zip(count(1), known)), room)


def quote_candidates(candidates: Iterable[Candidate], room: int) -> Quoted:
    """Candidates as `c1`, `c2`, …, the first ones within so many tokens."""
    return _quote_first((_entry_line(f"c{number}", each) for number, each in zip(count(1), candidates)), room)


def _quote_first(lines: Iterable[str], room: int) -> Quoted:
    all_lines = list(lines)
    kept = _fitting(all_lines, range(len(all_lines)), room)
    return Quoted(tuple(all_lines[place] for place in kept), left_out=len(all_lines) - len(kept))


def _fitting(lines: Sequence[str], order: Iterable[int], room: int) -> list[int]:
    """The places of lines that fit, taken in an order, and given in theirs."""
    kept = []
    for place in order:
        room -= _tokens(lines[place])
        if room < 0:
            break
        kept.append(place)
    return sorted(kept)


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
    told = {name: value for name, value in fields.items() if value is not None}
    written = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", written)


def shorten(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long, with a mark between them."""
    if len(text) <= longest:
        return to_valid_unicode(text)
    half = longest // 2
    left_out = len(text) - 2 * half
    return to_valid_unicode(f"{text[:half]} [… {left_out} characters left out …] {text[-half:]}")


def tokens_of_message(excerpt: Excerpt, message: Message) -> int:
    """About how many tokens a message is in a prompt that has room enough."""
    return 0 if message.role == "system" else _tokens(_message_line(excerpt, "m1000", message, _BOUNDS[0]))


def _tokens(line: str) -> int:
    return estimate_text_tokens(line) + 1
