"""How a statement is told: in the third person, with the dates it speaks of, and when it was said."""

import re
from datetime import date

from .grammar import Grammar
from .moments import Moment, tell_day
from .statements import Statement

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
    day = tell_day(said_on, grammar.is_chinese)
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
