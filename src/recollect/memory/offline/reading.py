"""What is worth knowing in one message of a user, as candidates."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from ..conversation import Message
from ..pipeline.stages import Candidate
from .asking import Asked, answer_to, asked_before
from .deciding import ENDS
from .grammar import ENGLISH, grammar_of
from .moments import Moment
from .salience import DATED, LEAST, PICTURED, STRONG, answers
from .sentences import caption_of
from .statements import Statement, statements_of
from .telling import LONGEST, tell_further, tell_statement, with_said_on

_SHORT = 60  # characters
_VERY_SHORT = {False: 20, True: 9}  # characters, and Chinese ones
_POINTS_BACK = re.compile(
    r"(?:it|they|he|she|this|that|these|those|there|the|we|his|her|their|its)\b|[它他她这那]", re.IGNORECASE
)
_CONFIDENCE = {"event": 0.8, "profile": 0.8, "mind": 0.6}
_CONFIDENCE_QUOTED = 0.6
_CONFIDENCE_SLOT = 0.9


def read_message(message: Message, before: Message | None) -> list[Candidate]:
    """What is worth knowing in a message of a user, given the message before it."""
    said_on = message.created_at.date()
    asked = asked_before(before)
    statements = statements_of(message.content, said_on)
    if not statements:
        return _without_statements(message, asked, said_on)
    is_kept = _score(statements, message.content, before) >= LEAST
    return [_candidate(group, message, said_on, asked) for group in _groups(statements, is_kept)]


def _without_statements(message: Message, asked: Asked | None, said_on: date) -> list[Candidate]:
    """A short answer to a question, or a picture."""
    answer = answer_to(asked, message.content, said_on) if asked else None
    if answer:
        return [_candidate([answer], message, said_on, asked)]
    caption = caption_of(message.content)
    if not caption or not asked or grammar_of(caption).injection.search(caption):
        return []
    return [_picture(caption, message, said_on)]


def _score(statements: Sequence[Statement], text: str, before: Message | None) -> float:
    """How much a message is worth keeping: each sign counts once."""
    by_language: dict[bool, list[tuple[float, ...]]] = {}
    for statement in statements:
        by_language.setdefault(statement.grammar.is_chinese, []).append(statement.signs)
    signs = sum(sum(map(_strongest, zip(*rows, strict=True))) for rows in by_language.values())
    dated = DATED if any(statement.moments for statement in statements) else 0.0
    pictured = PICTURED if caption_of(text) else 0.0
    asked = answers(before.content) if before and before.role == "assistant" else 0.0
    return signs + dated + pictured + asked + sum(statement.length for statement in statements)


def _strongest(column: Sequence[float]) -> float:
    return max(column, key=abs)


def _groups(statements: Sequence[Statement], is_kept: bool) -> list[list[Statement]]:
    """The statements of an entry each: those that stand by themselves, and the best of the others."""
    groups: list[list[Statement]] = []
    best = max(statements, key=lambda statement: statement.score)
    # One clause is worth as much as its sentence: none is lost because the others were set apart.
    split = {each.whole for each in statements if each.whole and (is_kept or each.stands_alone)}
    for statement in statements:
        least = LEAST if statement.is_plain else STRONG
        is_worth_it = statement is best or bool(statement.moments) or statement.score >= least
        if groups and _is_linked(groups[-1], statement):
            groups[-1].append(statement)
        elif statement.stands_alone or statement.whole in split or (is_kept and is_worth_it):
            groups.append([statement])
    return groups


def _is_linked(group: Sequence[Statement], statement: Statement) -> bool:
    """Whether a statement goes on where the group ends, and there is room for it."""
    length = sum(len(each.sentence) for each in group) + len(statement.sentence)
    return (
        statement.place == group[-1].place + 1
        and statement.grammar is group[-1].grammar
        and length < LONGEST
        and not statement.stands_alone
        and not statement.moments
        and (_only_says_when(group[-1]) or bool(_POINTS_BACK.match(statement.sentence)))
    )


def _only_says_when(statement: Statement) -> bool:
    """Whether a statement says when, and the next one what, as in "Last night was amazing"."""
    is_first_person = statement.grammar.is_first_person(statement.heard)
    return bool(statement.moments) and len(statement.sentence) < _SHORT and not is_first_person


def _candidate(group: Sequence[Statement], message: Message, said_on: date, asked: Asked | None) -> Candidate:
    head = group[0]
    question = asked if asked and _needs_question(head) else None
    text = _text(group, question, said_on)
    moment = head.moments[0] if head.moments else None
    valid = moment if moment and _is_true_from(head) else None
    slot = head.slot
    return Candidate(
        head.content_type,
        text,
        (message.message_id, question.message_id) if question else (message.message_id,),
        _confidence(head),
        valid_from=valid.value if valid else None,
        valid_to=valid.last_value if valid else None,
        slot=slot.name if slot else None,
        data=_data(head, moment, said_on),
    )


def _is_true_from(head: Statement) -> bool:
    """Whether it is true from the day it names: a wish and a birthday are not."""
    return head.content_type != "mind" and not (head.slot and head.slot.name == "birthday")


def _needs_question(head: Statement) -> bool:
    """Whether a statement is understood only with the question before it."""
    is_short = len(head.sentence) < _VERY_SHORT[head.grammar.is_chinese]
    return head.plain is None or (is_short and not head.grammar.is_first_person(head.heard))


def _text(group: Sequence[Statement], question: Asked | None, said_on: date) -> str:
    head = group[0]
    further = (tell_further(each) for each in group[1:])
    text = " ".join([tell_statement(head, question.text if question else None), *filter(None, further)])
    is_relative = any(moment.words for moment in head.moments)
    if is_relative or (head.is_happening and not head.moments):
        return with_said_on(text, said_on, head.grammar)
    return text


def _data(head: Statement, moment: Moment | None, said_on: date) -> dict[str, Any]:
    data: dict[str, Any] = {"slot": head.slot.name, "value": head.slot.value} if head.slot else {}
    if head.is_end:
        data[ENDS] = "job"
    if moment:
        data |= {"date": moment.value, "precision": moment.precision, "phrase": moment.phrase}
    if moment or head.is_happening:
        data["said_on"] = said_on.isoformat()
    return data


def _confidence(head: Statement) -> float:
    if head.slot:
        return _CONFIDENCE_SLOT
    return _CONFIDENCE_QUOTED if head.plain is None else _CONFIDENCE[head.content_type]


def _picture(caption: str, message: Message, said_on: date) -> Candidate:
    told = f"The user shared an image: {caption[:LONGEST].rstrip('.')}."
    text = with_said_on(told, said_on, ENGLISH)
    data = {"said_on": said_on.isoformat()}
    return Candidate("event", text, (message.message_id,), _CONFIDENCE_QUOTED, data=data)
