"""Finds the candidates in one message of a user: statements, short answers to a question, and corrections.

A short answer makes sense only with the question. A correction takes a statement back at once: "I live in
Munich." - "Actually, it's Berlin."
"""

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
from .own_words import own_words
from .references import Referent, relations_in
from .salience import DATED, LEAST, PICTURED, STRONG, answers, length_in_words
from .sentences import caption_of, sentences_of, without_opening
from .statements import (
    LONGEST,
    Statement,
    add_said_on,
    render_statement,
    statement_of,
    statements_of,
)

# --- answers to questions ---

_LONGEST_QUESTION = 120
_LONGEST_ANSWER = 60
_LAST = 2000  # characters at the end of the assistant's message that are searched for a question
_ASKS_FOR_A_NAME_OR_NUMBER = re.compile(
    r"\b(?:what|which|where|who|when|how (?:long|many|much|old|often))\b|什么|哪|谁|几|多[少大久长]",
    re.IGNORECASE,
)
_OF_THE_USER = re.compile(r"\byour?\b|[你您]", re.IGNORECASE)
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
    (re.compile(r"\bwhat do you do(?: for (?:a living|work))?\?", re.IGNORECASE), "I work as {}."),
    (re.compile(r"\bwhich languages? do you speak\b", re.IGNORECASE), "I speak {}."),
    (re.compile(r"\bwhere do you work\b", re.IGNORECASE), "I work at {}."),
    (re.compile("[你您](?:现在)?住在?(?:哪|什么地方)"), "我住在{}。"),
    (re.compile("[你您](?:叫什么|的名字)"), "我叫{}。"),
    (re.compile("[你您](?:今年)?(?:多大|几岁)"), "我今年{}。"),
)


@dataclass(frozen=True)
class Question:
    """A question of the assistant, to which the user's message may be the answer."""

    text: str
    message_id: str


def question_before(before: Message | None) -> Question | None:
    """The last question of the assistant in the message before, if it is short enough to be quoted."""
    if before is None or before.role != "assistant":
        return None
    for sentence in reversed(sentences_of(before.content[-_LAST:])):
        if sentence.endswith(("?", "？")) and not grammar_of(sentence).injection.search(sentence):
            question = without_opening(sentence)
            return Question(question, before.message_id) if len(question) <= _LONGEST_QUESTION else None
    return None


def read_answer(question: Question, text: str, said_on: date) -> Statement | None:
    """The message as a statement if it is a short answer that says something, else `None`."""
    sentences = sentences_of(text)
    if len(sentences) != 1 or len(sentences[0]) > _LONGEST_ANSWER:
        return None
    answer = without_opening(sentences[0])
    grammar = grammar_of(answer)
    if _SAYS_NOTHING.search(answer) or grammar.injection.search(answer) or grammar.recalled.search(answer):
        return None
    if any(pattern.search(answer) for pattern in grammar.junk):
        return None
    statement = statement_of(_whole(question, answer), 0, said_on)
    is_asked = _ASKS_FOR_A_NAME_OR_NUMBER.search(question.text) and _OF_THE_USER.search(question.text)
    return statement if statement.moments or is_asked else None


def _whole(question: Question, answer: str) -> str:
    """The answer as a full sentence if the question is a common one, else the answer."""
    for pattern, sentence in _WHOLE:
        if pattern.search(question.text) and grammar_of(answer).is_first_person(answer) is False:
            return sentence.format(answer.rstrip(".!。！"))
    return answer


# --- candidates of a message ---

_VERY_SHORT = {False: 20, True: 9}  # characters, and Chinese ones
_SHORT = 60  # characters
_TOLD = 12  # words of a message that tells something in a personal chat; shorter ones are small talk
_CONFIDENCE = {"event": 0.8, "profile": 0.8, "mind": 0.6}
_CONFIDENCE_QUOTED = 0.6
_CONFIDENCE_SLOT = 0.9


@dataclass(frozen=True)
class Setting:
    """What is known of the conversation when a message is read."""

    before: Message | None = None
    """The message before."""
    is_personal: bool = True
    """Whether the user chats about their life. Then what happened is worth more than between requests."""
    referent: Referent | None = None
    """Somebody whom the user has named, and whom "she" or "he" stands for."""


def read_message(message: Message, setting: Setting) -> list[Candidate]:
    """The candidates in a message of a user."""
    said_on = message.created_at.date()
    question = question_before(setting.before)
    statements = statements_of(message.content, said_on, setting.referent)
    if not statements:
        return _without_statements(message, question, said_on, setting.is_personal)
    is_told = setting.is_personal and length_in_words(message.content) >= _TOLD
    is_kept = is_told and _score(statements, message.content, setting.before) >= LEAST
    groups = _groups(statements, is_kept, question is not None)
    found = [_candidate(group, message, said_on, question) for group in groups]
    return [*found, *_relations(message, [each.text for each in found])]


def _relations(message: Message, told: Sequence[str]) -> Iterator[Candidate]:
    """Those close to the user whom a message names in passing, and whom no entry names."""
    for who, name in relations_in(own_words(message.content[:_LOOKED_AT])):
        if not any(who in text and name in text for text in told):
            yield Candidate(
                "profile", f"The user's {who} is {name}.", (message.message_id,), _CONFIDENCE["profile"]
            )


def _without_statements(
    message: Message, question: Question | None, said_on: date, is_personal: bool
) -> list[Candidate]:
    """The candidate of a message without statements: a short answer to a question, or an image."""
    answer = read_answer(question, message.content, said_on) if question else None
    if answer and (is_personal or answer.stands_alone):
        return [_candidate([answer], message, said_on, question)]
    caption = caption_of(message.content)
    if not caption or not question or grammar_of(caption).injection.search(caption):
        return []
    return [_picture(caption, message, said_on)]


def _score(statements: Sequence[Statement], text: str, before: Message | None) -> float:
    """The score of a message. Each sign counts once."""
    by_language: dict[bool, list[tuple[float, ...]]] = {}
    for statement in statements:
        by_language.setdefault(statement.grammar.is_chinese, []).append(statement.signs)
    signs = sum(sum(map(_strongest, zip(*rows, strict=True))) for rows in by_language.values())
    dated = DATED if any(statement.moments for statement in statements) else 0.0
    pictured = PICTURED if caption_of(text) else 0.0
    reply = answers(before.content) if before and before.role == "assistant" else 0.0
    return signs + dated + pictured + reply + sum(statement.length for statement in statements)


def _strongest(column: Sequence[float]) -> float:
    return max(column, key=abs)


def _groups(statements: Sequence[Statement], is_kept: bool, is_answer: bool) -> list[list[Statement]]:
    """The statements grouped by entry: those that stand alone, and the best of the others."""
    groups: list[list[Statement]] = []
    readable = [statement for statement in statements if statement.told or statement.reads_alone]
    best = max(readable, key=lambda statement: statement.score, default=None)
    for place, statement in enumerate(readable):
        least = LEAST if statement.is_plain else STRONG
        is_worth_it = statement is best or bool(statement.moments) or statement.score >= least
        is_worth_it = is_worth_it and (statement.tells_something or statement.score >= LEAST + 1)
        before = readable[place - 1] if place else None
        if before and _says_what(before, statement) and (statement.stands_alone or is_kept):
            groups = [group for group in groups if before not in group]
            groups.append([before, statement])
        elif statement.stands_alone or (is_kept and is_worth_it) or (is_answer and statement.only_dates):
            groups.append([statement])
    return groups


def _says_what(before: Statement, statement: Statement) -> bool:
    """Whether the one before says only when, and this one what, as in "Last night was amazing"."""
    is_first_person = before.grammar.is_first_person(before.heard)
    only_when = bool(before.moments) and len(before.sentence) < _SHORT and not is_first_person
    return only_when and statement.place == before.place + 1 and not statement.moments


def _candidate(
    group: Sequence[Statement], message: Message, said_on: date, question: Question | None
) -> Candidate:
    head = group[0]
    question = question if question and not head.told and _needs_question(head) else None
    text = _text(group, question, said_on)
    moment = head.moments[0] if head.moments else None
    valid = moment if moment and _is_true_from(head) and not head.told else None
    slot = head.slot
    until = valid.value if valid and valid.is_until else None
    return Candidate(
        "instruction" if head.told else head.content_type,
        text,
        (message.message_id, question.message_id) if question else (message.message_id,),
        _confidence(head),
        valid_from=valid.value if valid and not valid.is_until else None,
        valid_to=until or (valid.last_value if valid else None),
        slot=slot.name if slot else None,
        data=_data(head, moment, said_on),
        expires_at=until if _can_expire(head, until, said_on) else None,
    )


def _can_expire(head: Statement, until: str | None, said_on: date) -> bool:
    """Whether it stops to hold by itself. What has ended before it was said does not."""
    return until is not None and head.content_type != "event" and until >= said_on.isoformat()[: len(until)]


def _is_true_from(head: Statement) -> bool:
    """Whether it holds from the day that it names, unlike a wish or a birthday."""
    return head.content_type != "mind" and not (head.slot and head.slot.name == "birthday")


def _needs_question(head: Statement) -> bool:
    """Whether a statement makes sense only with the question before it."""
    is_short = len(head.sentence) < _VERY_SHORT[head.grammar.is_chinese]
    return head.plain is None or (is_short and not head.grammar.is_first_person(head.heard))


def _text(group: Sequence[Statement], question: Question | None, said_on: date) -> str:
    head = group[0]
    told = render_statement(head, question.text if question else None)
    text = " ".join([told, *map(render_statement, group[1:])])
    return add_said_on(text, said_on, head.grammar) if head.is_happening and not head.moments else text


def _data(head: Statement, moment: Moment | None, said_on: date) -> dict[str, Any]:
    data: dict[str, Any] = {"slot": head.slot.name, "value": head.slot.value} if head.slot else {}
    if head.told:
        return {}
    if head.is_end:
        data[ENDS] = "job"
    if moment:
        data |= {"date": moment.value, "precision": moment.precision, "phrase": moment.phrase}
    if moment or head.is_happening:
        data["said_on"] = said_on.isoformat()
    return data


def _confidence(head: Statement) -> float:
    if head.slot or head.told:
        return _CONFIDENCE_SLOT
    return _CONFIDENCE_QUOTED if head.plain is None else _CONFIDENCE[head.content_type]


def _picture(caption: str, message: Message, said_on: date) -> Candidate:
    rendered = f"The user shared an image: {caption[:LONGEST].rstrip('.')}."
    text = add_said_on(rendered, said_on, ENGLISH)
    data = {"said_on": said_on.isoformat()}
    return Candidate("event", text, (message.message_id,), _CONFIDENCE_QUOTED, data=data)


# --- corrections ---

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
    """A candidate and its correction."""

    original: Candidate
    corrected: Candidate
    rest: Message | None
    """The message without the correction."""


def find_correction(message: Message, earlier: Candidate | None) -> Correction | None:
    """The first correction in a message, of a statement in the same message or else of the `earlier` one."""
    if not _HINT.search(message.content, 0, _LOOKED_AT):
        return None
    sentences = list(_parts_of(message.content))
    for place, value in _values_in(sentences):
        wrong = _last_with_slot(message, sentences[:place]) or earlier
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
    """The sentences of a text. A sentence that corrects itself is split before the correction."""
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
    found = read_message(replace(message, content="\n".join(sentences)), Setting()) if sentences else []
    return next((candidate for candidate in reversed(found) if candidate.slot), None)


def _replaced(text: str, old: str, new: str) -> str:
    start = text.lower().find(old)
    return text if start < 0 else text[:start] + new + text[start + len(old) :]
