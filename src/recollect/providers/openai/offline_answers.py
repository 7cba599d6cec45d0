"""What the offline agent says: quotations of what is remembered, in English or Chinese, and no more."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from ...memory.entry import Entry
from ...memory.hits import MemoryHit, Recalled, TurnHit
from ...memory.times import tell_day

_MOST_ENTRIES = 5
_MOST_TURNS = 3
_LONGEST = 300  # characters of a quotation
# What a hit must share with the question: nearness in meaning is measured among all that is there, so that
# something is always nearest, whatever was asked.
_GROUNDS = ("text", "date", "phrase")
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_CJK = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_ASKS_FOR_ALL = re.compile(
    r"\b(?:what|anything|everything|all)\b.{0,40}\b(?:know|remember|learn(?:ed|t)?)\b.{0,20}\b(?:me|myself|us)\b"
    r"|\bwho am i\b|(?:知道|记得|了解|记住).{0,8}我|我是谁",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Language:
    notice: str
    nothing: str
    no_question: str
    known: str
    said: str
    speakers: dict[str, str]
    is_chinese: bool = False

    def day(self, time: datetime) -> str:
        """A day as it is written."""
        return f"{time.year}年{time.month}月{time.day}日" if self.is_chinese else tell_day(time)

    def date(self, told: str) -> str:
        """A day, a month or a year as it is written."""
        if len(told) == 10:
            return self.day(datetime.fromisoformat(told))
        if self.is_chinese:
            return f"{told[:4]}年" + (f"{int(told[5:])}月" if len(told) == 7 else "")
        return f"{date.fromisoformat(told + '-01'):%B %Y}" if len(told) == 7 else told


_ENGLISH = _Language(
    notice="No model is configured here, so I cannot think or chat: I only quote what I remember.",
    nothing="I remember nothing about that.",
    no_question="Ask me about something that was said before.",
    known="What I know:",
    said="What was said:",
    speakers={"user": "you", "assistant": "assistant", "system": "system"},
)
_IN_CHINESE = _Language(
    notice="这里没有配置模型，我不会思考或聊天，只引用我记得的内容。",
    nothing="关于这个问题，我什么都不记得。",
    no_question="请问我一件以前说过的事。",
    known="我知道的：",
    said="说过的话：",
    speakers={"user": "你", "assistant": "助手", "system": "系统"},
    is_chinese=True,
)
_NOTICES = (_ENGLISH.notice, _IN_CHINESE.notice)


class Quoted(NamedTuple):
    """The hits that an answer quotes."""

    entries: list[MemoryHit]
    turns: list[TurnHit]


def quoted_in_answer(question: str, recalled: Recalled) -> Quoted:
    """Those of the recalled hits that the answer to a question quotes."""
    asks_for_all = _ASKS_FOR_ALL.search(question) is not None
    known = [hit for hit in recalled.entries if asks_for_all or _is_grounded(hit)]
    said = [hit for hit in recalled.turns if _is_worth_quoting(hit, question)]
    return Quoted(known[:_MOST_ENTRIES], said[:_MOST_TURNS])


def answer_from(question: str, recalled: Recalled | None) -> str:
    """The answer to a question: what it is that answers, and quotations, or that there are none."""
    language = _language_of(question)
    if recalled is None:
        return f"{language.notice}\n\n{language.no_question}"
    quoted = quoted_in_answer(question, recalled)
    blocks = [language.notice]
    blocks += _block(language.known, [_known(hit.entry, language) for hit in quoted.entries])
    blocks += _block(language.said, [_said(hit, language) for hit in quoted.turns])
    return "\n\n".join(blocks if len(blocks) > 1 else [*blocks, language.nothing])


def _language_of(question: str) -> _Language:
    is_chinese = _CHINESE.search(question) is not None and _OTHER_CJK.search(question) is None
    return _IN_CHINESE if is_chinese else _ENGLISH


def _is_grounded(hit: MemoryHit | TurnHit) -> bool:
    return any(hit.parts.get(part, 0) > 0 for part in _GROUNDS)


def _is_worth_quoting(hit: TurnHit, question: str) -> bool:
    """Not the question itself, and not what was quoted here before."""
    content = hit.message.content
    is_repetition = content.strip() == question.strip() or content.startswith(_NOTICES)
    return _is_grounded(hit) and not is_repetition


def _block(title: str, quotations: list[str]) -> list[str]:
    return ["\n".join([title, *quotations])] if quotations else []


def _known(entry: Entry, language: _Language) -> str:
    said = language.day(entry.said_at or entry.learned_at)
    when = said if entry.valid_from is None else language.date(entry.valid_from)
    return f"> {_in_a_line(entry.text)} ({when})"


def _said(hit: TurnHit, language: _Language) -> str:
    speaker = language.speakers[hit.message.role]
    return f'> {language.day(hit.message.created_at)}, {speaker}: "{_in_a_line(hit.message.content)}"'


def _in_a_line(text: str) -> str:
    """A text that cannot leave its quotation."""
    line = " ".join(_UNFIT.sub(" ", text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()} …"
