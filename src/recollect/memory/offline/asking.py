"""Questions of the assistant, and the short answers that make sense only with them."""

import re
from dataclasses import dataclass
from datetime import date

from ..conversation import Message
from .grammar import grammar_of
from .sentences import sentences_of, without_opening
from .statements import Statement, statement_of

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
