"""The rules of each language behind one interface."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from . import chinese, english_patterns, english_rewriter
from .chinese import chinese_moments_in
from .dates import moments_in
from .moments import Moment
from .requests import QUESTION, REQUEST
from .sentences import is_chinese


@dataclass(frozen=True)
class Grammar:
    """The patterns and functions for one language."""

    is_chinese: bool
    moments_in: Callable[[str, date], list[Moment]]
    to_third_person: Callable[[str], str | None]
    quote: Callable[[str], str]
    is_first_person: Callable[[str], bool]
    speaks_to_somebody: Callable[[str], bool]
    injection: re.Pattern[str]
    order: re.Pattern[str]
    recalled: re.Pattern[str]
    question: re.Pattern[str]
    junk: tuple[re.Pattern[str], ...]
    done: re.Pattern[str]
    mind: re.Pattern[str]
    over: re.Pattern[str]
    left: re.Pattern[str]
    wish: re.Pattern[str]
    plain: re.Pattern[str]
    work_below: re.Pattern[str]
    work_above: re.Pattern[str]


ENGLISH = Grammar(
    is_chinese=False,
    moments_in=moments_in,
    to_third_person=english_rewriter.to_third_person,
    quote=english_rewriter.quote,
    is_first_person=english_rewriter.is_first_person,
    speaks_to_somebody=english_rewriter.speaks_to_somebody,
    injection=english_patterns.INJECTION,
    order=english_patterns.ORDER,
    recalled=english_patterns.RECALLED,
    question=QUESTION,
    junk=(
        english_patterns.COURTESY,
        english_patterns.REACTION,
        english_patterns.TO_THE_OTHER,
        english_patterns.WORK,
        english_patterns.HYPOTHETICAL,
        english_patterns.FLEETING,
        english_patterns.BARE,
        REQUEST,
    ),
    done=english_patterns.DONE,
    mind=english_patterns.MIND,
    over=english_patterns.OVER,
    left=english_patterns.LEFT,
    wish=english_patterns.WISH,
    plain=english_patterns.PLAIN,
    work_below=english_patterns.WORK_BELOW,
    work_above=english_patterns.WORK_ABOVE,
)
CHINESE = Grammar(
    is_chinese=True,
    moments_in=chinese_moments_in,
    to_third_person=chinese.to_third_person,
    quote=chinese.quote,
    is_first_person=chinese.is_first_person,
    speaks_to_somebody=chinese.speaks_to_somebody,
    injection=chinese.INJECTION,
    order=chinese.ORDER,
    recalled=chinese.RECALLED,
    question=chinese.QUESTION,
    junk=(chinese.JUNK, chinese.WORK, chinese.HYPOTHETICAL, chinese.FLEETING),
    done=chinese.DONE,
    mind=chinese.MIND,
    over=chinese.OVER,
    left=chinese.LEFT,
    wish=chinese.WISH,
    plain=chinese.PLAIN,
    work_below=chinese.WORK_BELOW,
    work_above=chinese.WORK_ABOVE,
)


def grammar_of(sentence: str) -> Grammar:
    """The grammar of the language that a sentence is in."""
    return CHINESE if is_chinese(sentence) else ENGLISH
