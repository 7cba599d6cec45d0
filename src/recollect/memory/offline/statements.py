"""What a message states: its sentences, without those that state nothing about the user."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from ..entry import ContentType
from .chinese import third_person_of
from .grammar import Grammar, grammar_of
from .moments import Moment
from .salience import DATED, length_of, signs_of
from .sentences import sentences_of, without_opening
from .slots import Slot, slot_of

_LEAST_WORDS = 3
_LEAST_CHARACTERS = 4  # of Chinese
_WORD = re.compile(r"\w+")
# "I live in Rome and work as a cook" says two things.
_TWO_THINGS = re.compile(
    r",? and (?:I )?(?=(?:work (?:as|at|for)|live in|am an? |am \d|have (?:a|two|three) )\b)", re.IGNORECASE
)
_I = re.compile(r"(?:I|I['’]m|My)\b", re.IGNORECASE)
_CLAUSE = re.compile("[，,]")


@dataclass(frozen=True)
class Statement:
    """A sentence that states something."""

    sentence: str
    grammar: Grammar
    place: int
    """The number of the sentence in its message."""
    moments: tuple[Moment, ...]
    signs: tuple[float, ...]
    length: float

    @cached_property
    def plain(self) -> str | None:
        """The sentence in the third person, without dates; `None` where that cannot be done cleanly."""
        return self.grammar.third_person_of(self.sentence)

    @cached_property
    def slot(self) -> Slot | None:
        """What it says of something that has one value at a time."""
        return slot_of(self.plain) if self.plain else None

    @property
    def stands_alone(self) -> bool:
        """Whether it is worth an entry of its own, whatever else the message says."""
        is_dated = bool(self.moments) and self.grammar.is_first_person(self.sentence)
        return is_dated or self.slot is not None

    @property
    def score(self) -> float:
        """How much it is worth keeping by itself."""
        return sum(self.signs) + self.length + (DATED if self.moments else 0.0)

    @property
    def content_type(self) -> ContentType:
        """What it says something about: who the user is, what happened, or what they think, feel and want."""
        if self.slot:
            return "profile"
        if self.moments and not all(moment.is_since for moment in self.moments):
            return "event"
        done, mind = self.grammar.done.search(self.sentence), self.grammar.mind.search(self.sentence)
        if self.grammar.over.search(self.sentence):
            done = None  # that it is so no longer is no happening
        if mind and not (done and done.start() < mind.start()):
            return "mind"
        return "event" if done and not self.moments else "profile"


def statements_of(text: str, said_on: date) -> list[Statement]:
    """What a message states, in its order."""
    told = enumerate(_told_sentences(sentences_of(text)))
    found = (statement_of(sentence, place, said_on) for place, sentence in told if sentence)
    return [statement for statement in found if not _is_about_the_other(statement)]


def _is_about_the_other(statement: Statement) -> bool:
    """Whether it is what the user thinks of the other, or offers: "I'm impressed by your courage"."""
    grammar, sentence = statement.grammar, statement.sentence
    is_happening = bool(statement.moments) or bool(grammar.done.search(sentence))
    return grammar.speaks_to_somebody(sentence) and not is_happening


def _told_sentences(sentences: list[str]) -> Iterator[str]:
    """The sentences that state something, and an empty text for each that does not."""
    was_injected = False
    for sentence in sentences:
        grammar = grammar_of(sentence)
        opened = without_opening(sentence)
        is_injected = bool(grammar.injection.search(sentence))
        was_injected = is_injected or (was_injected and bool(grammar.order.search(opened)))
        if was_injected or grammar.recalled.search(sentence) or not states_something(opened):
            yield ""
        else:
            yield from _things_of(opened)


def _things_of(sentence: str) -> Iterator[str]:
    if grammar_of(sentence).is_chinese:
        yield from _clauses_of(sentence)
    elif (match := _TWO_THINGS.search(sentence)) and _I.match(sentence):
        yield sentence[: match.start()] + "."
        yield "I " + sentence[match.end() :]
    else:
        yield sentence


def _clauses_of(sentence: str) -> list[str]:
    """The clauses of a Chinese sentence, where one of them tells what has one value: a name, a home."""
    clauses = _CLAUSE.split(sentence)
    if len(clauses) == 1 or not any(slot_of(third_person_of(clause) or "") for clause in clauses):
        return [sentence]
    return [clause for clause in clauses if len(clause) > 1]


def states_something(sentence: str) -> bool:
    """Whether a sentence without its opening is more than a question, a courtesy or a reaction."""
    grammar = grammar_of(sentence)
    if grammar.question.search(sentence) or any(pattern.search(sentence) for pattern in grammar.junk):
        return False
    if grammar.is_chinese:
        return len(sentence) > _LEAST_CHARACTERS
    return len(_WORD.findall(sentence)) >= _LEAST_WORDS


def statement_of(sentence: str, place: int, said_on: date) -> Statement:
    """A sentence as a statement."""
    grammar = grammar_of(sentence)
    return Statement(
        sentence,
        grammar,
        place,
        tuple(grammar.moments_in(sentence, said_on)),
        signs_of(sentence, grammar.is_chinese),
        length_of(sentence, grammar.is_chinese),
    )
