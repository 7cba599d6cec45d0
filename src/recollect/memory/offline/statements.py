"""The statements of a message: its sentences that say something about the user, and their text as entries."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice

from ..entry import ContentType
from ..facts.chinese_clauses import chinese_clauses_of
from ..facts.chinese_clauses import with_subject as with_chinese_subject
from ..facts.clauses import clauses_of, parts_of
from ..facts.instructions import chinese_instruction_in, instruction_in
from ..facts.slots import Slot, slot_of
from ..texts.remembered import remember, remember_list
from .chinese_worth import is_worth_keeping_in_chinese
from .english_rewriter import with_subject
from .grammar import CHINESE, ENGLISH, Grammar, grammar_of
from .moments import Moment, format_day
from .own_words import looks_like_code, own_words
from .references import Referent, referent_in
from .requests import SUPPOSED, introduces_text, is_exercise
from .salience import DATED, length_of, signs_of
from .sentences import mask_numerals, sentences_of, without_opening, without_speech
from .worth import is_worth_keeping, tells_of_activity, tells_of_life, tells_something

_TODAY = (
    "today",
    "tonight",
    "this morning",
    "this afternoon",
    "this evening",
    "earlier today",
    "今天",
    "今晚",
    "今早",
)
_POINTS_BACK = re.compile(
    r"(?:it|they|he|she|this|that|these|those|there|his|her|their|its|some|one|both|neither|which|who|as"
    r"|like|then|maybe|perhaps)"
    r"(?:['’]\w+)?\b|[它他她这那]",
    re.IGNORECASE,
)
# Somebody or something of the user's that has a date, though the sentence does not say whose it is.
_NAMED = re.compile(
    r"(?!(?:The|It|This|That|Yesterday|Today|Tomorrow|There|Last|Next|On|In"
    r"|At)\b)[A-Z][a-z]+ (?:and [A-Z][a-z]+ )?(?:was|were|is|are|died|turned|turns"
    r"|moved|starts?|started|got|comes?|arrives?|passed|takes?|has|had|visits?|leaves?|flies|graduate[sd]?"
    r"|will)\b"
    r"|(?i:(?:the |next |our )?(?:flight|venue|exam|test|wedding|appointment|party|interview|surgery"
    r"|operation|camp|trip|class|course|lease|contract"
    r"|deadline|presentation|release|move|gig|concert|rehearsal|hearing|delivery|due date)\b)"
)
_READABLE = re.compile("[A-Za-z]{2}|[\u4e00-\u9fff]")  # the languages that the rules know
# Digits of a card or an account never belong into a memory.
_PAYMENT = re.compile(
    r"\b(?:card|iban|cvv|cvc|pin|account number|routing number)\b[^.]{0,40}\d{3}|(?:\d[ -]?){13,19}"
    r"|卡号?.{0,8}\d{4}",
    re.IGNORECASE,
)
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
    told: str | None = None
    """What the user wants from now on, in the third person, if it is a standing instruction."""

    @cached_property
    def plain(self) -> str | None:
        """The sentence in the third person, without dates; `None` if it cannot be rewritten cleanly."""
        return self.grammar.to_third_person(self.sentence)

    @cached_property
    def slot(self) -> Slot | None:
        """The slot that it fills; `None` if it fills none."""
        return slot_of(self.plain) if self.plain else None

    @cached_property
    def stands_alone(self) -> bool:
        """Whether it is worth an entry in any conversation, independent of the rest of the message."""
        if self.told or self.slot:
            return True
        if not self.reads_alone:
            return False
        is_dated = self.is_dated
        if self.grammar.is_chinese:
            return is_worth_keeping_in_chinese(self.heard, is_dated) and self.plain is not None
        if self.plain is None:
            is_day = any(moment.precision != "year" for moment in self.moments)
            return is_dated and is_day and bool(_NAMED.match(self.sentence))
        if not self.grammar.is_first_person(self.heard):
            return is_dated or tells_of_life(with_subject(self.heard))
        return is_worth_keeping(with_subject(self.heard), is_dated)

    @property
    def only_dates(self) -> bool:
        """Whether it says when, and only the question before it says what."""
        return self.place == 0 and self.plain is None and self.is_dated and self.reads_alone

    @cached_property
    def is_dated(self) -> bool:
        """Whether it names a day or a period other than today, or tells of an activity of today."""
        is_other_day = any(
            moment.precision != "day" or moment.phrase.lower() not in _TODAY for moment in self.moments
        )
        return is_other_day or (bool(self.moments) and tells_of_activity(self.heard))

    @property
    def tells_something(self) -> bool:
        """Whether it tells more than how the user feels at the moment, or what they will do next."""
        if not _READABLE.search(self.heard):
            return False
        return self.grammar.is_chinese or tells_something(self.heard)

    @cached_property
    def reads_alone(self) -> bool:
        """Whether it is understood without the sentences before it."""
        if self.plain is None and (
            self.grammar.speaks_to_somebody(self.heard) or self.grammar.is_first_person(self.heard)
        ):
            return False
        return not _POINTS_BACK.match(self.sentence)

    @property
    def is_plain(self) -> bool:
        """Whether it says in a few words who the user is, or what they have, like or want."""
        return bool(self.grammar.plain.search(self.heard))

    @property
    def score(self) -> float:
        """Its score as an entry by itself."""
        return sum(self.signs) + self.length + (DATED if self.moments else 0.0)

    @cached_property
    def is_end(self) -> bool:
        """Whether it says that the user left a job, which is both an event and a change of the profile."""
        return bool(self.grammar.left.search(self.heard))

    @property
    def is_happening(self) -> bool:
        """Whether it is a happening, whose date matters."""
        return self.content_type == "event" or self.is_end

    @cached_property
    def content_type(self) -> ContentType:
        """The type of its entry: who the user is, what happened, or what they think, feel and want."""
        if self.told:
            return "mind"
        if self.slot or self.is_end:
            return "profile"
        done, mind = self.grammar.done.search(self.heard), self.grammar.mind.search(self.heard)
        if self.moments and not all(moment.is_since or moment.is_until for moment in self.moments):
            return "mind" if not done and self.grammar.wish.search(self.heard) else "event"
        if self.grammar.over.search(self.heard):
            done = None  # the end of a state is no happening
        if mind and not (done and done.start() < mind.start()):
            return "mind"
        return "event" if done and not self.moments else "profile"


@remember_list
def statements_of(text: str, said_on: date, referent: Referent | None = None) -> list[Statement]:
    """The statements of a message, in their order.

    `referent` is somebody whom an earlier message names, and whom a pronoun in this one may stand for.
    """
    if is_exercise(text):
        return []
    clauses = enumerate(_once_each(_statement_clauses(sentences_of(own_words(text)), referent)))
    found = (_statement_of(clause, place, said_on) for place, clause in clauses if clause.words)
    return [statement for statement in found if not _is_about_the_other(statement)]


def _is_about_the_other(statement: Statement) -> bool:
    """Whether it is about the listener, as in "I'm impressed by your courage"."""
    grammar, sentence = statement.grammar, statement.heard
    is_happening = bool(statement.moments) or bool(grammar.done.search(sentence))
    return not statement.told and grammar.speaks_to_somebody(sentence) and not is_happening


@dataclass(frozen=True)
class _Clause:
    """The words of a clause, or none for a sentence that states nothing."""

    words: str
    whole: str | None = None
    told: str | None = None


_NOTHING = _Clause("")
_MOST_CLAUSES = 2000  # of a message: this bounds the time that a message takes


def _once_each(clauses: Iterable[_Clause]) -> Iterator[_Clause]:
    """The first clauses, with an empty one for each that was there before."""
    seen: set[str] = set()
    for clause in islice(clauses, _MOST_CLAUSES):
        yield _NOTHING if clause.words in seen else clause
        seen.add(clause.words)


def _statement_clauses(sentences: list[str], referent: Referent | None) -> Iterator[_Clause]:
    """The clauses that state something, and an empty one for any other sentence."""
    was_injected, before = False, ""
    read: set[str] = set()
    for sentence in _own_sentences(sentences):
        grammar = grammar_of(sentence)
        opened = without_opening(sentence)
        is_injected = bool(grammar.injection.search(sentence))
        was_injected = is_injected or (was_injected and bool(grammar.order.search(opened)))
        if was_injected or grammar.recalled.search(sentence) or looks_like_code(sentence):
            yield _NOTHING
        elif grammar.is_chinese:
            yield from _chinese_clauses(opened, before)
        elif told := instruction_in(sentence):
            yield _Clause(opened, told=told)
        else:
            for part in parts_of(opened):
                if part in read:
                    continue
                read.add(part)
                said = referent.replace_in(part) if referent else part
                for each in parts_of(said) if said != part else [said]:
                    yield from _english_clauses(each)
                referent = referent_in(said) or referent
        before = opened


def _english_clauses(part: str) -> Iterator[_Clause]:
    told = instruction_in(part)
    part = without_opening(part)
    told = told or instruction_in(part)
    if told:
        yield _Clause(part, told=told)
    elif not states_something(part):
        yield _NOTHING
    else:
        clauses = clauses_of(part, ENGLISH.to_third_person)
        whole = part if len(clauses) > 1 else None
        yield from (_Clause(each, whole) if states_something(each) else _NOTHING for each in clauses)


def _chinese_clauses(sentence: str, before: str) -> Iterator[_Clause]:
    rewrite = CHINESE.to_third_person
    whole = with_chinese_subject(sentence, before, rewrite)
    clauses = [without_opening(each) for each in chinese_clauses_of(whole, rewrite)]
    for clause in clauses if len(clauses) > 1 else [whole]:
        told = chinese_instruction_in(clause)
        if told or states_something(clause):
            yield _Clause(clause, whole if len(clauses) > 1 else None, told)
        else:
            yield _NOTHING


def _own_sentences(sentences: list[str]) -> list[str]:
    """The user's own sentences, without a text that they want translated, rewritten or the like."""
    for place, sentence in enumerate(sentences):
        grammar, opened = grammar_of(sentence), without_opening(sentence)
        is_last = place == len(sentences) - 1
        if is_last and place and grammar.work_above.search(opened):
            return []
        if grammar.work_below.search(opened) or SUPPOSED.search(opened) or introduces_text(opened):
            return sentences[:place]
    return sentences


@remember
def states_something(sentence: str) -> bool:
    """Whether a sentence without its opening is more than a question, a courtesy or a reaction."""
    grammar = grammar_of(sentence)
    if grammar.question.search(sentence) or any(pattern.search(sentence) for pattern in grammar.junk):
        return False
    if looks_like_code(sentence) or _PAYMENT.search(sentence):
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


def statement_of(sentence: str, place: int, said_on: date) -> Statement:
    """A sentence as a statement."""
    return _statement_of(_Clause(sentence), place, said_on)


def _statement_of(clause: _Clause, place: int, said_on: date) -> Statement:
    sentence = clause.words
    grammar, heard = grammar_of(sentence), mask_numerals(without_speech(sentence))
    return Statement(
        sentence,
        heard,
        grammar,
        place,
        tuple(grammar.moments_in(heard, said_on)),
        signs_of(heard, grammar.is_chinese),
        length_of(heard, grammar.is_chinese),
        clause.whole,
        clause.told,
    )


# --- the text of an entry ---

LONGEST = 200
"""The approximate number of characters of an entry."""

_POSSESSIVE = re.compile(r"['’]s\b")
_OWN_PREPOSITION = re.compile(
    r"(on|in|since|during|of|by|from|until) (?!\d+ (?:day|week|month|year)|an? |two |three |four |five )",
    re.IGNORECASE,
)
_AFTER_PREPOSITION = re.compile(
    r"\b(?:on|in|since|during|of|by|from|until|till|before|after|to|for|around|about|through|between|and"
    r"|or|the|this|next|last|early|late|mid|end of)[ -]$",
    re.IGNORECASE,
)
_BARE_DATE = re.compile(r"(?:\d|[A-Z][a-z]+\.? \d|the \w+ of)")
_COUNTED = re.compile(r"\w+ (?:weeks|weekends) (?:before|after)")
_IS = re.compile(r" (?:was|is|were|has|had|felt|will)\b")
_LAST_SIGN = re.compile(r"[\s!.,;:…–—~-]+$|[。！，；：～]+$")


def render_statement(statement: Statement, question: str | None = None) -> str:
    """The text of an entry for a statement, without the day on which it was said."""
    if statement.told:
        return statement.told
    dated = _insert_dates(statement, is_quoted=question is not None)
    rendered = statement.grammar.to_third_person(dated)
    if rendered is not None:
        return _end_sentence(rendered, statement.grammar)
    if question is None:
        return _end_sentence(dated[:1].upper() + dated[1:], statement.grammar)
    quote = statement.grammar.quote(_end_sentence(dated, statement.grammar))
    return _add_question(question, quote, statement.grammar)


def add_said_on(text: str, said_on: date, grammar: Grammar) -> str:
    """The text with the day on which it was said."""
    day = format_day(said_on, grammar.is_chinese)
    if grammar.is_chinese:
        return f"{text.rstrip('。')}（说于{day}）。"
    return f"{text.rstrip('.')} (said on {day})."


def _insert_dates(statement: Statement, is_quoted: bool = False) -> str:
    """The sentence with the resolved date in place of each relative phrase, or after it in a quote."""
    text = shorten(statement.sentence, max((moment.end for moment in statement.moments), default=0))
    if statement.slot and statement.slot.name == "birthday":
        return text  # it is on this day of every year
    for moment in reversed(statement.moments):
        if moment.words and moment.end <= len(text) and is_quoted:
            text = f"{text[: moment.end]} ({moment.words}){text[moment.end :]}"
        elif moment.words and moment.end <= len(text):
            text = _with_date(text, moment, statement.grammar)
    return text


def _with_date(text: str, moment: Moment, grammar: Grammar) -> str:
    before, after = text[: moment.start], text[moment.end :]
    if grammar.is_chinese:
        return f"{before}{moment.words}{after}"
    if possessive := _POSSESSIVE.match(after):
        return f"{text[: moment.end]}{possessive.group()} ({moment.words}){after[possessive.end() :]}"
    words = moment.words
    if moment.last is None or not words.startswith("from"):
        words = f"{_preposition(before, moment, after)}{words}"
    return f"{before}{words[:1].upper() + words[1:] if not before else words}{after}"


def _preposition(before: str, moment: Moment, after: str) -> str:
    """The preposition of a date that is written in place of a phrase: "on", "in" or none."""
    own = _OWN_PREPOSITION.match(moment.phrase)
    if moment.words.startswith("since"):
        return ""
    if own:
        return f"{own.group(1).lower()} "
    if (
        _AFTER_PREPOSITION.search(before)
        or _BARE_DATE.match(moment.phrase)
        or (not before and _IS.match(after))
    ):
        return ""
    if _COUNTED.match(moment.words):
        return ""
    return "on " if moment.precision in ("day", "weekend") else "in "


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
