"""Quote messages and entries for a prompt: one on each line, after its number and its speaker.

In a quoted text every line break is a space, and every `<` is a wide one. The data can therefore contain no
marker of the prompt and start no line of its own.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from ...items import estimate_text_tokens
from ...models.text import to_valid_unicode
from ..conversation import Message
from ..entry import Entry
from ..lifetime import DOUBTFUL_BELOW
from ..pipeline.inferences import is_inferred
from ..pipeline.stages import Excerpt

# Characters of a message. The first bound with which all messages fit is used.
_BOUNDS = (8000, 4000, 2000, 1000, 500, 250)
_LONGEST_OF_OTHERS = 300  # nothing is learned from them: they are there to understand the user's
_LONGEST_EARLIER = 300
_LONGEST_ENTRY = 200
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BREAKS = re.compile("[\x00-\x20\x7f-\x9f\u2028\u2029]+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_LEFT_OUT = "[code]"


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


def quote_messages(excerpt: Excerpt, messages: Sequence[tuple[str | None, Message]], room: int) -> Quoted:
    """Quote messages within `room` tokens, under the days on which they were said.

    If they do not fit, long ones are shortened in the middle. If that is not enough, some are left out: first
    those that are not the user's, and the oldest first.
    """
    days = [_day_line(message.created_at.date()) for _, message in messages]
    room -= sum(map(_tokens, set(days)))
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
    read = [messages[index][1] for index in included]
    shortened = sum(excerpt.is_users(each) and len(_without_code(each.content)) > bound for each in read)
    dated = _under_days([(days[index], lines[index]) for index in included])
    return Quoted(dated, shortened, len(lines) - len(included))


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


def numbered_messages(excerpt: Excerpt) -> list[Message]:
    """The messages with a number, by which a model cites them: those of the user.

    Small models cite every message that they can.
    """
    return [message for message in excerpt.messages if excerpt.is_users(message)]


def number_messages(excerpt: Excerpt) -> list[tuple[str | None, Message]]:
    """The messages without the system's, and the numbers of those that have one: `m1`, `m2`, …"""
    numbered = enumerate(numbered_messages(excerpt), 1)
    numbers = {message.message_id: f"m{number}" for number, message in numbered}
    heard = [message for message in excerpt.messages if message.role != "system"]
    return [(numbers.get(message.message_id), message) for message in heard]


def quote_known(known: Sequence[Entry], room: int) -> Quoted:
    """Quote entries as `e1`, `e2`, …, as many as fit into `room` tokens."""
    lines = [_entry_line(f"e{number}", entry) for number, entry in enumerate(known, 1)]
    included = _fitting(lines, range(len(lines)), room)
    return Quoted(tuple(lines[index] for index in included), left_out=len(known) - len(included))


def _fitting(lines: Sequence[str], order: Iterable[int], room: int) -> list[int]:
    """The indexes of the lines that fit if they are taken in this order, sorted."""
    fitting = []
    for index in order:
        room -= _tokens(lines[index])
        if room < 0:
            break
        fitting.append(index)
    return sorted(fitting)


def _under_days(lines: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Lines with a heading where the day changes."""
    dated: list[str] = []
    last = None
    for day, line in lines:
        dated += [line] if day == last else [day, line]
        last = day
    return tuple(dated)


def _day_line(day: date) -> str:
    return f"({_WEEKDAYS[day.weekday()]} {day.isoformat()})"


def _message_line(excerpt: Excerpt, number: str | None, message: Message, longest: int) -> str:
    is_users = excerpt.is_users(message)
    text = shorten(_without_code(message.content), longest if is_users else min(longest, _LONGEST_OF_OTHERS))
    speaker = " ".join(filter(None, (number, excerpt.role_of(message), None if is_users else message.name)))
    return _one_line(f"{speaker}: {text}")


def _entry_line(number: str, entry: Entry) -> str:
    since = f" (since {entry.valid_from})" if entry.valid_from else ""
    doubtful = " (doubtful)" if entry.confidence < DOUBTFUL_BELOW else ""
    kind = "guess" if is_inferred(entry) else entry.content_type
    return _one_line(f"{number} {kind}: {shorten(entry.text, _LONGEST_ENTRY)}{since}{doubtful}")


def _one_line(text: str) -> str:
    return _BREAKS.sub(" ", to_valid_unicode(text)).replace("<", "\uff1c")


def _without_code(text: str) -> str:
    return _FENCED.sub(_CODE_LEFT_OUT, text) if "```" in text else text


def shorten(text: str, longest: int) -> str:
    """The text, or if it is too long its beginning and end with a mark between them."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half} characters left out …] {text[-half:]}"


def tokens_of_message(excerpt: Excerpt, message: Message) -> int:
    """An estimate of the tokens of a message in a prompt with enough room."""
    return 0 if message.role == "system" else _tokens(_message_line(excerpt, "m1000", message, _BOUNDS[0]))


def _tokens(line: str) -> int:
    return estimate_text_tokens(line) + 1
