"""What holds for a project from now on, by rule: instructions, conventions and decisions of the user.

Only the memory of a project gets such entries. A sentence in doubt teaches nothing.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import cast

from ..conversation import Message
from ..entry import ContentType
from ..pipeline.stages import Candidate
from .own_words import looks_like_code, own_words
from .rules import load
from .sentences import split_sentences

PROJECT_AGENT = "code:"
"""How the agent of a project's memory begins."""
_CONFIDENCE = 0.9
_LONGEST = 300  # characters of a sentence


def work_in(message: Message) -> Iterator[Candidate]:
    """The candidates of one message of the user."""
    for sentence in split_sentences(own_words(message.content)).read:
        found = None if looks_like_code(sentence) else read_work(sentence)
        if found is not None:
            kind, text = found
            yield Candidate(kind, text, (message.message_id,), _CONFIDENCE)


def read_work(sentence: str) -> tuple[ContentType, str] | None:
    """The type and the text of the entry that a sentence teaches; `None` if there is none."""
    setting = load_work()
    text = " ".join(sentence.replace("’", "'").split())
    if len(text) > _LONGEST or setting.unless.search(text):
        return None
    opening = setting.opening.match(text)
    start = opening.end() if opening else 0
    for kind, words, pattern, unless in setting.rules:
        match = pattern.match(text, start)
        if match and not (unless and unless.search(text)):
            groups = {name: value.strip(" .,`") for name, value in match.groupdict().items()}
            first = next(iter(groups))
            groups[first] = _lowered(groups[first])
            return kind, words.format(**groups)
    return None


def _lowered(text: str) -> str:
    is_name = text[:2].isupper() or not text.split(" ")[0].istitle()
    return text if is_name else text[:1].lower() + text[1:]


class _Work:
    """The patterns, compiled."""

    def __init__(self) -> None:
        given = load("work")
        setting = given["setting"]
        self.unless = re.compile(setting["unless"], re.IGNORECASE)
        self.opening = re.compile(f"{setting['opening']}{setting['place']}", re.IGNORECASE)
        self.rules = [
            (
                cast(ContentType, rule["type"]),
                str(rule["text"]),
                re.compile(rule["pattern"], re.IGNORECASE),
                re.compile(rule["unless"], re.IGNORECASE) if "unless" in rule else None,
            )
            for rule in given["rules"]
        ]


@cache
def load_work() -> _Work:
    """The patterns. Compiling them takes a moment, so it is done when first needed."""
    return _Work()
