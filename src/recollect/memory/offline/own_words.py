"""The user's own words in a message: without code, quoted lines, transcripts, and other pasted text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..texts.remembered import remember

_MOST = 200_000  # characters of a message that are read
_LINE = 400  # characters of a line that are looked at
_FENCE = re.compile(r"(?:```|~~~)[^\n]*\n.*?(?:\n(?:```|~~~)|\Z)|```[^`\n]{0,2000}```", re.DOTALL)
_ALL_QUOTED = re.compile(
    r"\s*[\"“](?P<words>[^\"“”\n]{1,300})[\"”]\s*\Z"
)  # a message that somebody put in quotation marks
_QUOTED_LINE = re.compile(r"\s*(?:[>|]|&gt;)")
_SENT_BEFORE = re.compile(
    r"\s*(?:-{3,} ?(?:original|forwarded) message|begin forwarded message|on [^\n]{5,80} wrote: ?$"
    r"|from: [^\n]{1,60}@|在[^\n]{5,60}写道[:：]|-+ ?原始邮件)",
    re.IGNORECASE,
)
_STAMPED = re.compile(
    r"\s*[\[(]?(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?[\])]?[ ,-]*[^\s:][^:]{0,30}: ?"
)
_SPEAKER = re.compile(r"\s*(?P<who>[^\W\d_][\w .'-]{0,24}) ?[:：] ?\S")
_LEAST_TURNS = 3  # lines with a speaker in a transcript, if no line has a time

_CODE_START = re.compile(
    r"\s*(?:import [\w.*{]|from [\w.]+ import|(?:async )?def \w|class \w+ ?[(:{]|return\b[^.]{0,60}$"
    r"|#include|#!/"
    r"|(?:public|private|protected|static|final|const|let|var|fn|func|function|boolean|int|void"
    r"|String) [\w<\[]"
    r"|(?:if|for|while|switch) ?\([^)]{0,200}\) ?[{:]?|(?:else|try|finally) ?[{:]|\}|</?[a-zA-Z]|@\w+\("
    r"|\$ |>>> |//|/\*"
    r"|(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|WITH) [^a-z]{0,2}\w|Traceback \(most"
    r"|File \"[^\"]+\", line"
    r"|at [\w.$]+\(|\w*(?:Error|Exception|Warning): |(?:ERROR|WARN|INFO|DEBUG|FATAL)\b[ :]"
    r"|(?:npm|pip3?|git|sudo|kubectl|docker|curl|cd|apt(?:-get)?|brew|cargo|make|python3?) [\w./-]+(?: |$))"
)
_CODE_WITHIN = re.compile(
    r"=>|==|!=|&&|\|\||::|\(\)|\w\([^()\s]{0,60}\)[.;\[]|[;{}]\s*$|\w\[\w+\]|^\s*\w+ ?= ?\S|'''|\"\"\"|_{3,}"
)
_SIGN = re.compile(r"[{}()\[\]<>=;|\\/*#$&^~_`@]")
_MOST_SIGNS = 0.12  # share of such signs in a line that is no code
_LEAST_SIGNS = 4


@remember
def own_words(text: str) -> str:
    """The text without what is not said by the user: it is code, quoted, or pasted."""
    if whole := _ALL_QUOTED.match(text):
        return whole["words"]
    lines = _FENCE.sub("\n", text[:_MOST]).split("\n")
    return "\n".join(_spoken(list(_before_forwarded(lines))))


@remember
def looks_like_code(text: str) -> bool:
    """Whether a line or a sentence is code, a command, or the output of a program."""
    text = text[:_LINE]
    signs = len(_SIGN.findall(text))
    return bool(_CODE_START.match(text) or _CODE_WITHIN.search(text)) or signs >= max(
        _LEAST_SIGNS, _MOST_SIGNS * len(text)
    )


def _before_forwarded(lines: Sequence[str]) -> Iterator[str]:
    """The lines before a forwarded message, without quoted lines and code."""
    for line in lines:
        if _SENT_BEFORE.match(line[:_LINE]):
            return
        if not _QUOTED_LINE.match(line[:_LINE]) and not (len(lines) > 1 and looks_like_code(line)):
            yield line


def _spoken(lines: Sequence[str]) -> list[str]:
    """The lines that are no part of a transcript: other people speak there."""
    stamped = [bool(_STAMPED.match(line[:_LINE])) for line in lines]
    if any(stamped):
        return [line for line, is_stamped in zip(lines, stamped, strict=True) if not is_stamped]
    speakers = [match["who"] if (match := _SPEAKER.match(line[:_LINE])) else "" for line in lines]
    turns = Counter(filter(None, speakers))
    if turns.total() < _LEAST_TURNS or max(turns.values()) < 2:
        return list(lines)
    return [line for line, who in zip(lines, speakers, strict=True) if not who]
