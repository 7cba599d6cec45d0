"""What a message states: its sentences, without those that state nothing about the user."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from ..entry import ContentType
from ..facts.chinese_clauses import chinese_clauses_of, with_subject
from ..facts.clauses import clauses_of
from ..facts.health import concerns_health
from ..facts.slots import Slot, slot_of
from .grammar import CHINESE, Grammar, grammar_of
from .moments import Moment, format_date
from .salience import DATED, length_of, signs_of
from .sentences import sentences_of, without_opening, without_speech

_LEAST_WORDS = 3
_LEAST_CHARACTERS = 5  # of Chinese
_LEAST_PLAIN = 3  # of Chinese, where it is plain what is said
_WORD = re.compile(r"\w+")
_CHARACTER = re.compile(r"\w")


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
    whole: str | None = None
    """The sentence of which it is a clause; `None` where it is a sentence of its own."""

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
        is_first_person = self.grammar.is_first_person(self.heard)
        is_sure = bool(self.moments) or (self.is_plain and concerns_health(self.heard))
        return (is_first_person and is_sure) or self.slot is not None

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
    told = enumerate(_told_clauses(sentences_of(text)))
    found = (statement_of(clause, place, said_on, whole) for place, (clause, whole) in told if clause)
    return [statement for statement in found if not _is_about_the_other(statement)]


def _is_about_the_other(statement: Statement) -> bool:
    """Whether it is what the user thinks of the other, or offers: "I'm impressed by your courage"."""
    grammar, sentence = statement.grammar, statement.heard
    is_happening = bool(statement.moments) or bool(grammar.done.search(sentence))
    return grammar.speaks_to_somebody(sentence) and not is_happening


def _told_clauses(sentences: list[str]) -> Iterator[tuple[str, str | None]]:
    """Clauses that state something, each with its sentence, and an empty text for each other sentence."""
    was_injected, before = False, ""
    for sentence in _own_sentences(sentences):
        grammar = grammar_of(sentence)
        opened = without_opening(sentence)
        is_injected = bool(grammar.injection.search(sentence))
        was_injected = is_injected or (was_injected and bool(grammar.order.search(opened)))
        if was_injected or grammar.recalled.search(sentence) or not states_something(opened):
            yield "", None
        else:
            tell = grammar.third_person_of
            whole = with_subject(opened, before, tell) if grammar.is_chinese else opened
            clauses = _clauses_of(whole)
            if len(clauses) == 1:
                yield whole, None
            else:
                yield from ((clause if states_something(clause) else "", whole) for clause in clauses)
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


def _clauses_of(sentence: str) -> list[str]:
    """The clauses of a sentence that state a fact each, or else the sentence."""
    grammar = grammar_of(sentence)
    if grammar.is_chinese:
        return [without_opening(each) for each in chinese_clauses_of(sentence, grammar.third_person_of)]
    return clauses_of(sentence, grammar.third_person_of)


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


def statement_of(sentence: str, place: int, said_on: date, whole: str | None = None) -> Statement:
    """A sentence, or a clause of one, as a statement."""
    grammar, heard = grammar_of(sentence), without_speech(sentence)
    return Statement(
        sentence,
        heard,
        grammar,
        place,
        tuple(grammar.moments_in(heard, said_on)),
        signs_of(heard, grammar.is_chinese),
        length_of(heard, grammar.is_chinese),
        whole,
    )


LONGEST = 200
"""Characters of an entry, about."""

_POSSESSIVE = re.compile(r"['’]s\b")
_LAST_SIGN = re.compile(r"[\s!.,;:…–—~-]+$|[。！，；：～]+$")


def tell_statement(statement: Statement, question: str | None = None) -> str:
    """The statement as an entry has it, without the day on which it was said."""
    dated = _dated(statement)
    told = statement.grammar.third_person_of(dated)
    if told is not None:
        return _ended(told, statement.grammar)
    quoted = statement.grammar.quoted(_ended(dated, statement.grammar))
    return _asked(question, quoted, statement.grammar) if question else quoted


def tell_further(statement: Statement) -> str | None:
    """The statement after another one in the same entry; `None` where the other is spoken to."""
    grammar = statement.grammar
    if grammar.speaks_to_somebody(statement.heard):
        return None
    dated = _dated(statement)
    return _ended(grammar.third_person_of(dated) or dated, grammar)


def with_said_on(text: str, said_on: date, grammar: Grammar) -> str:
    """The text of an event, and when it was said."""
    day = format_date(said_on, grammar.is_chinese)
    if grammar.is_chinese:
        return f"{text.rstrip('。')}（说于{day}）。"
    return f"{text.rstrip('.')} (said on {day})."


def _dated(statement: Statement) -> str:
    """The sentence with the resolved date after each phrase that does not say it all."""
    text = shortened(statement.sentence, max((moment.end for moment in statement.moments), default=0))
    for moment in reversed(statement.moments):
        if moment.words and moment.end <= len(text):
            text = _with_date(text, moment, statement.grammar)
    return text


def _with_date(text: str, moment: Moment, grammar: Grammar) -> str:
    before, after = text[: moment.end], text[moment.end :]
    if grammar.is_chinese:
        return f"{before}（{moment.words}）{after}"
    if possessive := _POSSESSIVE.match(after):
        return f"{before}{possessive.group()} ({moment.words}){after[possessive.end() :]}"
    goes_on = after[:1].isspace() and not after.lstrip().startswith(("-", "–", "("))
    return f"{before}, {moment.words}{',' if goes_on else ''}{after}"


def shortened(sentence: str, least: int = 0) -> str:
    """A long sentence up to the end of a part of it, of at least so many characters."""
    if len(sentence) <= LONGEST:
        return sentence
    places = [
        match.start() for match in re.finditer(r" [-–—] |[;,，；] ?| (?:and|but|so|because) ", sentence)
    ]
    fitting = [place for place in places if max(60, least) <= place <= LONGEST]
    cut = fitting[-1] if fitting else max(LONGEST, least)
    return sentence[:cut].rstrip() + "…"


def _ended(text: str, grammar: Grammar) -> str:
    if text.endswith("…"):
        return text
    return _LAST_SIGN.sub("", text) + ("。" if grammar.is_chinese else ".")


def _asked(question: str, quoted: str, grammar: Grammar) -> str:
    if grammar.is_chinese:
        return f"被问到“{question}”时，{quoted}"
    return f'Asked "{question}", {quoted[0].lower()}{quoted[1:]}'
