"""Scores how much a message is worth remembering: the weights of its signs add up.

The English weights are rounded from a regression on six conversations, which was checked by leaving out each
of them once. Those of plain statements and of Chinese are set by hand.
"""

import re

from ..texts.any_case import AnyCase
from .chinese import DONE as DONE_CHINESE
from .english_patterns import DONE

LEAST = 1.2
"""The least score of a message for an entry."""
STRONG = 2.0
"""The least score of a further sentence of the same message for an entry of its own."""
DATED = 1.1
PICTURED = 0.5
ANSWERS = 0.7
"""Added for a message after a question; 1.6 times as much if that asked what, where, who, why or how."""
EACH_WORD = 0.02
_MOST_WORDS = 60

_KIN = (
    "mom|mother|mum|dad|father|parents?|sister|brother|son|daughter|kids?|child(?:ren)?|wife|husband"
    "|partner|girlfriend|boyfriend"
    "|fianc[ée]e?|family|grand\\w+|aunt|uncle|cousin|niece|nephew|friends?|dogs?|cats?|pets?|pupp(?:y"
    "|ies)|kittens?"
)
_MATTERS = (
    "job|work(?:ed|ing|s)?|company|business|career|degree|school|college|university|class(?:es)?|course"
    "|team|project|books?|movies?"
    "|games?|club|group|charity|trip|vacation|travel\\w*|hik(?:e|ed|ing)|camping|tournament|competition"
    "|hospital|doctor|church|gym"
    "|yoga|paint\\w*|music|songs?|concert|band|guitar|piano|recipe|cook(?:ing|ed)?|bak(?:e|ed|ing)|car"
    "|house|apartment|city|town"
    "|country|park|beach|sport\\w*|hobb(?:y|ies)|allergic|allergy|diet|language|exam|wedding|birthday|moved"
)
_NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|dozen|couple"
_SIGNS: tuple[tuple[re.Pattern[str] | AnyCase, float], ...] = (
    (
        re.compile(r"\b(?:I|I['’]\w+|my|mine)\b|^(?:been|just|started|got|lost|took|went)\b", re.IGNORECASE),
        0.7,
    ),
    # A plain sentence such as "I like tea" has no other sign that it matters.
    (
        re.compile(
            r"^I(?:['’]m| am)? (?:(?:really|also|always|usually|often|now|never|do not|don['’]t"
            r"|can['’]t) )*(?:like|love|hate"
            r"|prefer|have|own|play|speak|study|work|live|use|drive|eat|drink|need|want|was born|an?"
            r"|allergic|from|called"
            r"|moved|grew up|single|married|vegan|vegetarian|afraid|feel|felt|think|believe|hope|wish"
            r"|used to|no longer|stand|bear)\b"
            r"|^(?:I am|I['’]m|My (?:\w+ ){1,3}(?:is|are|was|has|lives|works)) "
            rf"|^My (?:\w+ )?(?:{_KIN}) (?:[A-Z]\w+ )?[a-z]{{3,}}s |\bfor a living\b",
            re.IGNORECASE,
        ),
        0.5,
    ),
    (re.compile(r"\b(?:you|your|you['’]\w+)\b", re.IGNORECASE), -0.2),
    (DONE, 0.7),
    (re.compile(r"(?<=[a-z,] )(?!I\b)[A-Z][a-z]+|[\"“][^\"”]{2,60}[\"”]"), 0.9),
    (AnyCase(rf"\d|\b(?:{_NUMBERS})\b"), 0.2),
    (AnyCase(rf"\b(?:{_KIN})\b"), 0.3),
    (AnyCase(rf"\b(?:{_MATTERS})\b"), 0.4),
    (re.compile(r"\w+, \w[\w ]{0,30},? (?:and|or) \w"), 0.3),
)
_SIGNS_CHINESE: tuple[tuple[re.Pattern[str] | AnyCase, float], ...] = (
    (re.compile("我|咱"), 1.2),
    (re.compile("[你您]"), -0.2),
    (DONE_CHINESE, 0.5),
    (re.compile('[A-Za-z]{2,}|[《“"][^》”"]{1,40}[》”"]'), 0.7),
    (re.compile("[0-9]|[一二两三四五六七八九十]+[个只次岁年月天本条位名]"), 0.3),
    (re.compile("[妈爸父母哥弟姐妹妻夫爷奶儿女]|老公|老婆|孩子|朋友|男友|女友|家人|猫|狗"), 0.4),
    (
        re.compile(
            "工作|上班|公司|学校|大学|专业|学习|书|电影|游戏|旅行|旅游|医院|医生|音乐|做饭|跑步|运动"
            "|城市|过敏|住|搬|生日|喜欢|爱好"
        ),
        0.6,
    ),
    (re.compile("[、]"), 0.3),
)
_LOOKED_AT = 2000
_CJK = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile(r"\w+")
_ASKS_FOR_MUCH = re.compile(
    r"\b(?:what|which|where|who|when|why|how (?:long|many|did|often|old))\b[^.!?]*\?"
    r"|[什么哪谁为何几多怎].{0,30}[?？]",
    re.IGNORECASE,
)
_ASKS = re.compile("[?？]")


def signs_of(sentence: str, is_chinese: bool) -> tuple[float, ...]:
    """The weight of each sign in a sentence; 0 if the sign is missing."""
    given = _SIGNS_CHINESE if is_chinese else _SIGNS
    return tuple(weight if pattern.search(sentence) else 0.0 for pattern, weight in given)


def length_of(sentence: str, is_chinese: bool) -> float:
    """The weight of the length of a sentence."""
    words = len(sentence) // 2 if is_chinese else len(_WORD.findall(sentence))
    return EACH_WORD * min(words, _MOST_WORDS)


def length_in_words(text: str) -> int:
    """The number of words of a message; two Chinese characters count as a word."""
    return len(_WORD.findall(text[:_LOOKED_AT])) + len(_CJK.findall(text[:_LOOKED_AT])) // 2


def answers(question: str) -> float:
    """The weight of a question in the message before."""
    if not _ASKS.search(question):
        return 0.0
    return ANSWERS * (1.6 if _ASKS_FOR_MUCH.search(question) else 1)
