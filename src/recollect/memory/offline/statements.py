"""What a message states: its sentences, without those that state nothing about the user."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from ..entry import ContentType
from .clauses import clauses_of, with_subject
from .grammar import CHINESE, Grammar, grammar_of
from .moments import Moment
from .quotes import without_speech
from .salience import DATED, length_of, signs_of
from .sentences import sentences_of, without_opening
from .slots import Slot, slot_of

_LEAST_WORDS = 3
_LEAST_CHARACTERS = 5  # of Chinese
_LEAST_PLAIN = 3  # of Chinese, where it is plain what is said
_WORD = re.compile(r"\w+")
_CHARACTER = re.compile(r"\w")
# "I live in Rome and work as a cook" says two things.
_TWO_THINGS = re.compile(
    r",? and (?P<who>I )?(?=(?:work (?:as|at|for)|live in|am an? |am \d|have (?:a|two|three) )\b)",
    re.IGNORECASE,
)
_I = re.compile(r"(?:I|I['’]m)\b", re.IGNORECASE)
_MINE = re.compile(r"My (?:[\w'’-]+ ){1,3}(?:is|are|was|has|have|[a-z]{2,}s)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """A sentence that states something."""

    sentence: str
    heard: str
    """The sentence without what is quoted in it."""
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
        is_dated = bool(self.moments) and self.grammar.is_first_person(self.heard)
        return is_dated or self.slot is not None

    @property
    def is_plain(self) -> bool:
        """Whether it says in a few words who the user is, or what they have, like or want."""
        return bool(self.grammar.plain.search(self.heard))

    @property
    def score(self) -> float:
        """How much it is worth keeping by itself."""
        return sum(self.signs) + self.length + (DATED if self.moments else 0.0)

    @property
    def is_end(self) -> bool:
        """Whether it says that the user left a job: it happened once, and changes who the user is."""
        return bool(self.grammar.left.search(self.heard))

    @property
    def is_happening(self) -> bool:
        """Whether it is something of which one wants to know when it was."""
        return self.content_type == "event" or self.is_end

    @property
    def content_type(self) -> ContentType:
        """What it says something about: who the user is, what happened, or what they think, feel and want."""
        if self.slot or self.is_end:
            return "profile"
        done, mind = self.grammar.done.search(self.heard), self.grammar.mind.search(self.heard)
        if self.moments and not all(moment.is_since for moment in self.moments):
            return "mind" if not done and self.grammar.wish.search(self.heard) else "event"
        if self.grammar.over.search(self.heard):
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
    grammar, sentence = statement.grammar, statement.heard
    is_happening = bool(statement.moments) or bool(grammar.done.search(sentence))
    return grammar.speaks_to_somebody(sentence) and not is_happening


def _told_sentences(sentences: list[str]) -> Iterator[str]:
    """The sentences that state something, and an empty text for each that does not."""
    was_injected, before = False, ""
    for sentence in _own_sentences(sentences):
        grammar = grammar_of(sentence)
        opened = without_opening(sentence)
        is_injected = bool(grammar.injection.search(sentence))
        was_injected = is_injected or (was_injected and bool(grammar.order.search(opened)))
        if was_injected or grammar.recalled.search(sentence) or not states_something(opened):
            yield ""
        else:
            whole = with_subject(opened, before) if grammar.is_chinese else opened
            yield from _things_of(whole)
        before = opened


def _own_sentences(sentences: list[str]) -> list[str]:
    """The sentences of the user, without a text that is to be translated, rewritten or the like."""
    for place, sentence in enumerate(sentences):
        grammar, opened = grammar_of(sentence), without_opening(sentence)
        is_last = place == len(sentences) - 1
        if is_last and place and grammar.work_above.search(opened):
            return []
        if grammar.work_below.search(opened):
            return sentences[:place]
    return sentences


def _things_of(sentence: str) -> Iterator[str]:
    if grammar_of(sentence).is_chinese:
        yield from map(without_opening, clauses_of(sentence))
    elif (match := _TWO_THINGS.search(sentence)) and _is_about_the_user(sentence, match):
        yield sentence[: match.start()] + "."
        yield "I " + sentence[match.end() :]
    else:
        yield sentence


def _is_about_the_user(sentence: str, linked: re.Match[str]) -> bool:
    """Whether what is linked is: "My mother sings and I have a cat", but not "My mother and I have a cat"."""
    return bool(_I.match(sentence) or (linked["who"] and _MINE.match(sentence, 0, linked.start())))


def states_something(sentence: str) -> bool:
    """Whether a sentence without its opening is more than a question, a courtesy or a reaction."""
    grammar = grammar_of(sentence)
    if grammar.question.search(sentence) or any(pattern.search(sentence) for pattern in grammar.junk):
        return False
    if grammar.is_chinese:
        return _says_enough_in_chinese(sentence)
    return len(_WORD.findall(sentence)) >= _LEAST_WORDS


def _says_enough_in_chinese(sentence: str) -> bool:
    count = len(_CHARACTER.findall(sentence))
    is_plain = count >= _LEAST_PLAIN and CHINESE.plain.search(sentence)
    return (
        count >= _LEAST_CHARACTERS
        or bool(is_plain)
        or slot_of(CHINESE.third_person_of(sentence) or "") is not None
    )


def statement_of(sentence: str, place: int, said_on: date) -> Statement:
    """A sentence as a statement."""
    grammar, heard = grammar_of(sentence), without_speech(sentence)
    return Statement(
        sentence,
        heard,
        grammar,
        place,
        tuple(grammar.moments_in(heard, said_on)),
        signs_of(heard, grammar.is_chinese),
        length_of(heard, grammar.is_chinese),
    )
