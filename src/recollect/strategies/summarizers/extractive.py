"""Summaries without a model: the most informative sentences and tool results, quoted verbatim."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum, log1p

from ...errors import SummaryFailedError
from ...items import Item, estimate_text_tokens, is_call, is_output, pair_calls, role_of
from ...models.text import to_valid_unicode
from .protocol import Summary, SummaryRequest
from .sentences import clip, cut_to_fit, split_sentences
from .transcript import tool_names, words_of

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CHINESE = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]+")
_STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been but by can could did do does doing
    don't for from get got had has have he her here him his how i i'm if in into is it it's its just
    like me more my no not now of oh on one or our out really she so some such than that that's the
    their them then there these they this those to too up us very was we well were what when where which
    who why will with would yes you your
    """.split()  # noqa: SIM905
)
# Phrases of statements about the user, decisions and obligations.
_CUE = re.compile(
    r"\b(?:my name|i am|i'm|i live|i work|i was|i have|i've|i need|i want|i like|i love|i prefer|i hate|"
    r"my \w+ (?:is|are|was)|remember|important|decid\w+|agreed|must|never|always|deadline|budget|allergic|"
    r"prefer\w*|born|moved|booked|scheduled|because|instead|changed)\b"
    r"|我(?:叫|是|住|在|喜欢|爱|讨厌|需要|想|要|有|不)|决定|必须|一定|记住|重要|不要|已经|因为|预算|截止|地址|生日|过敏",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万]+[年月日号点个元块岁]")
_NAME = re.compile(r"(?<=[a-z,:;] )[A-Z][\w'-]+")
_QUESTION = re.compile(r"[?？][\"'”’」』)]*$|[吗呢]$")

_COURTESY = re.compile(
    r"\W*(?:hi|hello|hey|ok|okay|sure|yes|no|thanks|thank you|great|good|fine|bye|please|welcome|"
    r"you(?:'|’)?re welcome|(?:thanks|thank you) (?:so|very) much|got it|i see|"
    r"你好|您好|好的?|嗯+|是的?|谢谢你?|多谢|不客气|再见|可以|行)(?: there| again)?\W*",
    re.IGNORECASE,
)

# Weights, tuned on how many words of the expected answers a summary of a long conversation contains.
_FROM_USER, _FROM_TOOL, _IN_PREVIOUS = 0.2, 0.15, 0.2
_HAS_CUE, _HAS_NUMBER, _HAS_NAME, _IS_QUESTION = 0.3, 0.35, 0.5, -0.25
_NEWEST = 0.1
_ENOUGH_TERMS = 8  # a fact with fewer terms scores less


@dataclass(frozen=True)
class Fact:
    """A line that may become part of a summary."""

    speaker: str
    text: str
    is_known: bool = False
    """Whether the previous summary contains it."""

    @property
    def line(self) -> str:
        """The line of the summary."""
        return f"- {self.speaker}: {self.text}" if self.speaker else f"- {self.text}"


def choose(facts: Sequence[Fact], max_tokens: int) -> list[Fact]:
    """Choose the best facts within `max_tokens` tokens, in their order. At least one is chosen."""
    terms = [terms_of(fact.text) for fact in facts]
    costs = [estimate_text_tokens(fact.line + "\n") for fact in facts]
    scores = _scores(facts, terms)
    candidates = [index for index, its in enumerate(terms) if its and not _is_courtesy(facts[index])]
    first = max(range(len(facts)), key=lambda index: (scores[index], index))
    chosen: list[int] = []
    left = max_tokens
    while candidates := [index for index in candidates if costs[index] <= left and scores[index] > 0]:
        best = max(candidates, key=lambda index: (scores[index], index))
        chosen.append(best)
        left -= costs[best]
        _mark_down(scores, terms, best, candidates)
    return [facts[index] for index in sorted(chosen or [first])]


def _is_courtesy(fact: Fact) -> bool:
    return _COURTESY.fullmatch(fact.text) is not None


def terms_of(text: str) -> frozenset[str]:
    """The terms of a text: its words without stop words, and pairs of Chinese characters."""
    words = {word.lower() for word in _WORD.findall(_CHINESE.sub(" ", text))} - _STOP_WORDS
    for run in _CHINESE.findall(text):
        words.update(run[start : start + 2] for start in range(max(1, len(run) - 1)))
    return frozenset(words)


def _scores(facts: Sequence[Fact], terms: Sequence[frozenset[str]]) -> list[float]:
    counts = Counter(term for each in terms for term in each)
    newest, most = max(1, len(facts) - 1), log1p(len(facts))
    return [
        _score(fact, [log1p(len(facts) / counts[term]) / most for term in its]) + _NEWEST * index / newest
        for index, (fact, its) in enumerate(zip(facts, terms, strict=True))
    ]


def _score(fact: Fact, weights: list[float]) -> float:
    """Score a fact by how rare its terms are and by what it contains."""
    score = fsum(weights) / max(1, len(weights))  # fsum: the result does not depend on the order
    score += {"User": _FROM_USER, "Assistant": 0.0, "": 0.0}.get(fact.speaker, _FROM_TOOL)
    score += _IN_PREVIOUS if fact.is_known else 0.0
    score += _HAS_CUE if _CUE.search(fact.text) else 0.0
    score += _HAS_NUMBER if _NUMBER.search(fact.text) else 0.0
    score += _HAS_NAME if _NAME.search(fact.text) else 0.0
    score += _IS_QUESTION if _QUESTION.search(fact.text) else 0.0
    return score * min(1.0, len(weights) / _ENOUGH_TERMS)


def _mark_down(
    scores: list[float], terms: Sequence[frozenset[str]], chosen: int, candidates: Sequence[int]
) -> None:
    """Lower the scores of facts that share terms with the chosen one. Its own score becomes 0."""
    for index in candidates:
        shared = len(terms[index] & terms[chosen])
        if shared:
            scores[index] *= 1 - shared / len(terms[index])


_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_LONGEST = 60  # tokens of a sentence
_LONGEST_ARGUMENTS = 20  # tokens


class ExtractiveSummarizer:
    """Picks the most informative facts. It needs no model and no network, and is deterministic.

    It quotes sentences of the user and the assistant, and names tools with their results. The facts of the
    previous summary are ranked again together with the new ones, so that the summary does not grow.
    """

    model = "extractive"

    async def __call__(self, request: SummaryRequest) -> Summary:
        """Summarize within the limit of the request."""
        # In a thread: a long history takes seconds, which would block the event loop.
        return Summary(await asyncio.to_thread(extract, request), self.model)


def extract(request: SummaryRequest) -> str:
    """The best facts of the previous summary and of the new turns."""
    facts = [*_known_facts(request.previous or ""), *_new_facts(request.items)]
    facts = list({fact.line: fact for fact in facts}.values())
    if not facts:
        raise SummaryFailedError("there is no text to summarize")
    lines = [fact.line for fact in choose(facts, request.max_tokens)]
    return cut_to_fit("\n".join(lines), request.max_tokens)


def _known_facts(previous: str) -> Iterator[Fact]:
    """The facts of a previous summary: its lines if it was made here, otherwise its sentences."""
    for line in to_valid_unicode(previous).splitlines():
        if line.startswith("- "):
            speaker, colon, text = line[2:].partition(": ")
            is_ours = bool(colon) and (speaker in _SPEAKERS.values() or speaker.startswith("Tool "))
            yield Fact(speaker, text, True) if is_ours else Fact("", line[2:].strip(), True)
        else:
            yield from (Fact("", clip(text, _LONGEST), True) for text in split_sentences(line))


def _new_facts(items: Sequence[Item]) -> Iterator[Fact]:
    names = tool_names(items)
    outputs = pair_calls(items).outputs_of
    paired = {output for its in outputs.values() for output in its}
    for index, item in enumerate(items):
        speaker = _SPEAKERS.get(role_of(item) or "")
        if speaker is not None:
            yield from (Fact(speaker, _line(text, _LONGEST)) for text in split_sentences(words_of(item)))
        elif index in names and index not in paired:
            yield _tool_fact(names[index], item, [items[output] for output in outputs.get(index, [])])


def _tool_fact(name: str, item: Item, outputs: list[Item]) -> Fact:
    """The arguments and the result of a tool."""
    if is_output(item):
        return Fact(f"Tool {name}", _line(words_of(item), _LONGEST))
    arguments = _line(words_of(item), _LONGEST_ARGUMENTS)
    result = _line(" ".join(map(words_of, outputs)), _LONGEST)
    result = result or ("no output yet" if is_call(item) else "done")
    return Fact(f"Tool {name}", f"{arguments} → {result}" if arguments else result)


def _line(text: str, max_tokens: int) -> str:
    """The text on one line, shortened to `max_tokens`."""
    return clip(" ".join(text.split()), max_tokens)
