"""The statements of a message: its sentences that say something about the user, and their text as entries."""

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
from .moments import Moment, format_day
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
        """The sentence in the third person, without dates; `None` if it cannot be rewritten cleanly."""
        return self.grammar.to_third_person(self.sentence)

    @cached_property
    def slot(self) -> Slot | None:
        """The slot that it fills; `None` if it fills none."""
        return slot_of(self.plain) if self.plain else None

    @property
    def stands_alone(self) -> bool:
        """Whether it deserves an entry of its own, independent of the rest of the message."""
        is_first_person = self.grammar.is_first_person(self.heard)
        is_sure = bool(self.moments) or (self.is_plain and concerns_health(self.heard))
        return (is_first_person and is_sure) or self.slot is not None

    @property
    def is_plain(self) -> bool:
        """Whether it says in a few words who the user is, or what they have, like or want."""
        return bool(self.grammar.plain.search(self.heard))

    @property
    def score(self) -> float:
        """Its score as an entry by itself."""
        return sum(self.signs) + self.length + (DATED if self.moments else 0.0)

    @property
    def is_end(self) -> bool:
        """Whether it says that the user left a job, which is both an event and a change of the profile."""
        return bool(self.grammar.left.search(self.heard))

    @property
    def is_happening(self) -> bool:
        """Whether it is a happening, whose date matters."""
        return self.content_type == "event" or self.is_end

    @property
    def content_type(self) -> ContentType:
        """The type of its entry: who the user is, what happened, or what they think, feel and want."""
        if self.slot or self.is_end:
            return "profile"
        done, mind = self.grammar.done.search(self.heard), self.grammar.mind.search(self.heard)
        if self.moments and not all(moment.is_since for moment in self.moments):
            return "mind" if not done and self.grammar.wish.search(self.heard) else "event"
        if self.grammar.over.search(self.heard):
            done = None  # the end of a state is no happening
        if mind and not (done and done.start() < mind.start()):
            return "mind"
        return "event" if done and not self.moments else "profile"


def statements_of(text: str, said_on: date) -> list[Statement]:
    """The statements of a message, in their order."""
    clauses = enumerate(_statement_clauses(sentences_of(text)))
    found = (statement_of(clause, place, said_on, whole) for place, (clause, whole) in clauses if clause)
    return [statement for statement in found if not _is_about_the_other(statement)]


def _is_about_the_other(statement: Statement) -> bool:
    """Whether it is about the listener, as in "I'm impressed by your courage"."""
    grammar, sentence = statement.grammar, statement.heard
    is_happening = bool(statement.moments) or bool(grammar.done.search(sentence))
    return grammar.speaks_to_somebody(sentence) and not is_happening


def _statement_clauses(sentences: list[str]) -> Iterator[tuple[str, str | None]]:
    """The clauses that state something, each with its sentence, and an empty text for any other sentence."""
    was_injected, before = False, ""
    for sentence in _own_sentences(sentences):
        grammar = grammar_of(sentence)
        opened = without_opening(sentence)
        is_injected = bool(grammar.injection.search(sentence))
        was_injected = is_injected or (was_injected and bool(grammar.order.search(opened)))
        if was_injected or grammar.recalled.search(sentence) or not states_something(opened):
            yield "", None
        else:
            rewrite = grammar.to_third_person
            whole = with_subject(opened, before, rewrite) if grammar.is_chinese else opened
            clauses = _clauses_of(whole)
            if len(clauses) == 1:
                yield whole, None
            else:
                yield from ((clause if states_something(clause) else "", whole) for clause in clauses)
        before = opened


def _own_sentences(sentences: list[str]) -> list[str]:
    """The user's own sentences, without a text that they want translated, rewritten or the like."""
    for place, sentence in enumerate(sentences):
        grammar, opened = grammar_of(sentence), without_opening(sentence)
        is_last = place == len(sentences) - 1
        if is_last and place and grammar.work_above.search(opened):
            return []
        if grammar.work_below.search(opened):
            return sentences[:place]
    return sentences


def _clauses_of(sentence: str) -> list[str]:
    """The clauses of a sentence if each states a fact, or else the whole sentence."""
    grammar = grammar_of(sentence)
    if grammar.is_chinese:
        return [without_opening(each) for each in chinese_clauses_of(sentence, grammar.to_third_person)]
    return clauses_of(sentence, grammar.to_third_person)


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
        or slot_of(CHINESE.to_third_person(sentence) or "") is not None
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


# --- the text of an entry ---

LONGEST = 200
"""The approximate number of characters of an entry."""

_POSSESSIVE = re.compile(r"['’]s\b")
_LAST_SIGN = re.compile(r"[\s!.,;:…–—~-]+$|[。！，；：～]+$")


def render_statement(statement: Statement, question: str | None = None) -> str:
    """The text of an entry for a statement, without the day on which it was said."""
    dated = _insert_dates(statement)
    rendered = statement.grammar.to_third_person(dated)
    if rendered is not None:
        return _end_sentence(rendered, statement.grammar)
    quote = statement.grammar.quote(_end_sentence(dated, statement.grammar))
    return _add_question(question, quote, statement.grammar) if question else quote


def render_continuation(statement: Statement) -> str | None:
    """The text of a further statement in the same entry; `None` if it addresses the listener."""
    grammar = statement.grammar
    if grammar.speaks_to_somebody(statement.heard):
        return None
    dated = _insert_dates(statement)
    return _end_sentence(grammar.to_third_person(dated) or dated, grammar)


def add_said_on(text: str, said_on: date, grammar: Grammar) -> str:
    """The text with the day on which it was said."""
    day = format_day(said_on, grammar.is_chinese)
    if grammar.is_chinese:
        return f"{text.rstrip('。')}（说于{day}）。"
    return f"{text.rstrip('.')} (said on {day})."


def _insert_dates(statement: Statement) -> str:
    """The sentence with the resolved date after each relative phrase, such as "last week"."""
    text = shorten(statement.sentence, max((moment.end for moment in statement.moments), default=0))
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


def shorten(sentence: str, least: int = 0) -> str:
    """A long sentence, cut at the end of a part, but not before `least` characters."""
    if len(sentence) <= LONGEST:
        return sentence
    places = [
        match.start() for match in re.finditer(r" [-–—] |[;,，；] ?| (?:and|but|so|because) ", sentence)
    ]
    fitting = [place for place in places if max(60, least) <= place <= LONGEST]
    cut = fitting[-1] if fitting else max(LONGEST, least)
    return sentence[:cut].rstrip() + "…"


def _end_sentence(text: str, grammar: Grammar) -> str:
    if text.endswith("…"):
        return text
    return _LAST_SIGN.sub("", text) + ("。" if grammar.is_chinese else ".")


def _add_question(question: str, quote: str, grammar: Grammar) -> str:
    if grammar.is_chinese:
        return f"被问到“{question}”时，{quote}"
    return f'Asked "{question}", {quote[0].lower()}{quote[1:]}'
