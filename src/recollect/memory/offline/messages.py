"""Questions of the assistant, and the short answers that make sense only with them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from ..conversation import Message
from ..facts.slots import slot_of
from ..pipeline.stages import MOST_EVIDENCE, Candidate
from .decisions import ENDS
from .grammar import ENGLISH, grammar_of
from .moments import Moment
from .salience import DATED, LEAST, PICTURED, STRONG, answers
from .sentences import caption_of, sentences_of, without_opening
from .statements import (
    LONGEST,
    Statement,
    statement_of,
    statements_of,
    tell_further,
    tell_statement,
    with_said_on,
)

_LONGEST_QUESTION = 120
_LONGEST_ANSWER = 60
_LAST = 2000  # characters of the assistant's message, in which its last question stands
_ASKS_FOR_A_NAME_OR_NUMBER = re.compile(
    r"\b(?:what|which|where|who|when|how (?:long|many|much|old|often))\b|什么|哪|谁|几|多[少大久长]",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"^(?:yes|yeah|yep|no|nope|sure|ok(?:ay)?|maybe|not (?:yet|really|sure)|i (?:do|did|am|have|don['’]t"
    r"|will)|nothing"
    r"|never mind|thanks?|thank you|of course|definitely|absolutely|是的?|不是?|好的?|嗯+|对|没有|谢谢"
    r"|不知道|随便)(?:\W+(?:thanks?|thank you)\b.*)?\W*$"
    r"|[?？]",
    re.IGNORECASE,
)
_WHOLE = (
    (re.compile(r"\bwhere (?:do|are) you (?:live|living|based)\b", re.IGNORECASE), "I live in {}."),
    (re.compile(r"\b(?:what['’]s|what is) your name\b", re.IGNORECASE), "My name is {}."),
    (re.compile(r"\bhow old are you\b", re.IGNORECASE), "I am {}."),
    (re.compile(r"\bwhere do you work\b", re.IGNORECASE), "I work at {}."),
    (re.compile("[你您](?:现在)?住在?(?:哪|什么地方)"), "我住在{}。"),
    (re.compile("[你您](?:叫什么|的名字)"), "我叫{}。"),
    (re.compile("[你您](?:今年)?(?:多大|几岁)"), "我今年{}。"),
)


@dataclass(frozen=True)
class Asked:
    """The question that a message follows."""

    text: str
    message_id: str


def asked_before(before: Message | None) -> Asked | None:
    """The last question of the assistant's message before, if it is short enough to be told."""
    if before is None or before.role != "assistant":
        return None
    for sentence in reversed(sentences_of(before.content[-_LAST:])):
        if sentence.endswith(("?", "？")) and not grammar_of(sentence).injection.search(sentence):
            question = without_opening(sentence)
            return Asked(question, before.message_id) if len(question) <= _LONGEST_QUESTION else None
    return None


def answer_to(asked: Asked, text: str, said_on: date) -> Statement | None:
    """The message as a statement, if it is a short answer that says something."""
    sentences = sentences_of(text)
    if len(sentences) != 1 or len(sentences[0]) > _LONGEST_ANSWER:
        return None
    answer = without_opening(sentences[0])
    grammar = grammar_of(answer)
    if _SAYS_NOTHING.search(answer) or grammar.injection.search(answer) or grammar.recalled.search(answer):
        return None
    if any(pattern.search(answer) for pattern in grammar.junk):
        return None
    statement = statement_of(_whole(asked, answer), 0, said_on)
    return statement if statement.moments or _ASKS_FOR_A_NAME_OR_NUMBER.search(asked.text) else None


def _whole(asked: Asked, answer: str) -> str:
    """The answer as a whole sentence, where the question is one of those that everybody asks."""
    for pattern, sentence in _WHOLE:
        if pattern.search(asked.text) and grammar_of(answer).is_first_person(answer) is False:
            return sentence.format(answer.rstrip(".!。！"))
    return answer


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


_LOOKED_AT = 500  # characters: a correction comes soon
_SORRY = r"(?:(?:actually|no|sorry|oops|wait|correction|scratch that|i misspoke)[,.!:;]? )"
_MEANT = r"(?:i mean|i meant|make that)"
_VALUE = r"(?!(?:it|that|this|he|she|they|we|you|what|the)\b)(?P<{}>[^.,!?]{{1,40}})[.!]*$"
_CORRECTION = re.compile(
    rf"^{_SORRY}{{1,3}}(?:it['’]s|it is|(?:it|that) should be) {_VALUE.format('value')}"
    rf"|^{_SORRY}{{0,3}}{_MEANT} {_VALUE.format('meant')}"
    r"|^(?:其实|不对|不|错了|说错了|更正)[，,。：:]? ?(?:应该)?(?:是|我是说)"
    r"(?P<chinese>[^。，,！!？?]{1,20})[。！!]*$",
    re.IGNORECASE,
)
_HINT = re.compile("it['’]s|it is|should be|i mean|make that|是", re.IGNORECASE)
_WITHIN = re.compile(rf", (?={_SORRY}{{0,3}}{_MEANT} [^,.!?]{{1,40}}[.!]*$)", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """What was told, as it is corrected."""

    told: Candidate
    corrected: Candidate
    rest: Message | None
    """The message without the correction."""


def correction_in(message: Message, told: Candidate | None) -> Correction | None:
    """The first correction in a message: of what it said before, or else of what was told before it."""
    if not _HINT.search(message.content, 0, _LOOKED_AT):
        return None
    sentences = list(_parts_of(message.content))
    for place, value in _values_in(sentences):
        wrong = _last_with_slot(message, sentences[:place]) or told
        right = _corrected(message, wrong, value) if wrong else None
        if wrong and right:
            rest = "\n".join((*sentences[:place], *sentences[place + 1 :]))
            return Correction(wrong, right, replace(message, content=rest) if rest else None)
    return None


def _corrected(message: Message, wrong: Candidate, value: str) -> Candidate | None:
    text = _replaced(wrong.text, str(wrong.data["value"]), value)
    slot = slot_of(text)
    if slot is None or slot.name != wrong.slot or slot.value == wrong.data["value"]:
        return None
    evidence = tuple(dict.fromkeys((message.message_id, *wrong.evidence)))[:MOST_EVIDENCE]
    return replace(wrong, text=text, evidence=evidence, data={**wrong.data, "value": slot.value})


def _parts_of(text: str) -> Iterator[str]:
    """The sentences of a text, and what is corrected within one apart from its correction."""
    for sentence in sentences_of(text):
        yield from _WITHIN.split(sentence, maxsplit=1)


def _values_in(sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
    read = 0
    for place, sentence in enumerate(sentences):
        match = _CORRECTION.match(sentence) if read < _LOOKED_AT else None
        read += len(sentence)
        if match:
            yield place, (match["value"] or match["meant"] or match["chinese"]).strip()


def _last_with_slot(message: Message, sentences: Sequence[str]) -> Candidate | None:
    found = read_message(replace(message, content="\n".join(sentences)), None) if sentences else []
    return next((candidate for candidate in reversed(found) if candidate.slot), None)


def _replaced(text: str, old: str, new: str) -> str:
    start = text.lower().find(old)
    return text if start < 0 else text[:start] + new + text[start + len(old) :]
