"""Long chats of a user with an agent, made up, always the same: short questions, long answers with code."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

import numpy as np

from recollect.memory.conversation import Message, Role
from recollect.memory.search.passages import split
from recollect.memory.search.records import Place, Record, make_record

QUESTION, ANSWER = 200, 1500
"""About how many characters the messages have."""
MESSAGES = 100
"""Messages of a conversation."""
_WORDS = 12_000
_COMMON = 0.95  # the exponent of Zipf's law
_TEXTS = 4_000  # different messages; then they repeat
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SYLLABLES = (
    "an ber co da el fi gra ho in jo ka lu ment no or pre qui ra ser tion un ver wo xi ye zo st le".split()  # noqa: SIM905
)


class Chats:
    """Makes messages, and their search records with random vectors."""

    def __init__(self, dimensions: int) -> None:
        self._random = random.Random(7)
        self._vectors = np.random.default_rng(7)
        self._dimensions = dimensions
        self._words = ["".join(self._random.choices(_SYLLABLES, k=2 + n % 3)) for n in range(_WORDS)]
        self._weights = [1 / (place + 1) ** _COMMON for place in range(_WORDS)]
        self._made: list[tuple[Message, Record]] = []

    def messages(self, count: int) -> Iterator[tuple[Message, Record]]:
        """Messages with their records, in the order of their conversations."""
        if not self._made:
            self._made = [self._make(place) for place in range(_TEXTS)]
        return islice(cycle(self._made), count)

    def question(self) -> str:
        """A question about something that was said."""
        words = self._random.choices(self._words[50:3000], k=4)
        return f"What did we decide about the {words[0]} {words[1]} and the {words[2]} {words[3]}?"

    def _make(self, place: int) -> tuple[Message, Record]:
        index, is_answer = place % MESSAGES, bool(place % 2)
        text = self._answer() if is_answer else self._prose(QUESTION)
        role: Role = "assistant" if is_answer else "user"
        time = _START + timedelta(minutes=place)
        passages = split(text)
        vectors = self._vectors.standard_normal((len(passages), self._dimensions), np.float32)
        record = make_record(text, Place(role, index, time), vectors, passages)
        return Message(role, text, f"m{index}", index, time), record

    def _answer(self) -> str:
        words = self._random.choices(self._words, self._weights, k=12)
        lines = [
            f"    {a} = {b}({c}, {number})"
            for number, (a, b, c) in enumerate(zip(*[iter(words)] * 3, strict=True))
        ]
        code = "\n".join(["```python", f"def {words[0]}():", *lines, f"    return {words[-1]}", "```"])
        half = (ANSWER - len(code)) // 2
        return f"{self._prose(half)}\n\n{code}\n\n{self._prose(half)}"

    def _prose(self, size: int) -> str:
        words = self._random.choices(self._words, self._weights, k=size // 5)
        text, line = "", ""
        for place, word in enumerate(words):
            line = f"{line} {word}" if line else word.capitalize()
            if place % 14 == 13:
                text, line = f"{text}{line}. ", ""
            if len(text) + len(line) >= size:
                break
        return f"{text}{line}.".strip()
