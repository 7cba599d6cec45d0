"""Summaries without a model: the sentences and tool results that tell most, as they were said."""

import asyncio
from collections.abc import Iterator, Sequence

from ...errors import SummaryFailedError
from ...items import Item, is_call, is_output, pair_calls, role_of
from .protocol import Summary, SummaryRequest
from .ranking import Fact, choose
from .sentences import clip, cut_to_fit, split_sentences, well_formed
from .transcript import tool_names, words_of

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_LONGEST = 60  # tokens of a sentence
_LONGEST_ARGUMENTS = 20  # tokens


class ExtractiveSummarizer:
    """Picks what tells most, needs no model and no network, and says the same of the same.

    It quotes sentences of the user and the assistant, and names tools with what they returned. What the
    summary so far has is ranked again beside what is new, so that it does not grow.
    """

    model = "extractive"

    async def __call__(self, request: SummaryRequest) -> Summary:
        """The summary, within the limit of the request."""
        # In a thread: a long history is looked through for seconds, and nobody else should wait.
        return Summary(await asyncio.to_thread(extract, request), self.model)


def extract(request: SummaryRequest) -> str:
    """What tells most of the summary so far and of the turns that are new."""
    facts = [*_known_facts(request.previous or ""), *_new_facts(request.items)]
    facts = list({fact.line: fact for fact in facts}.values())
    if not facts:
        raise SummaryFailedError("there are no words to summarize")
    lines = [fact.line for fact in choose(facts, request.max_tokens)]
    return cut_to_fit("\n".join(lines), request.max_tokens)


def _known_facts(previous: str) -> Iterator[Fact]:
    """The lines of a summary made here, or the sentences of one that another has made."""
    for line in well_formed(previous).splitlines():
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
    """What a tool was asked, and what it said."""
    if is_output(item):
        return Fact(f"Tool {name}", _line(words_of(item), _LONGEST))
    asked = _line(words_of(item), _LONGEST_ARGUMENTS)
    said = _line(" ".join(map(words_of, outputs)), _LONGEST) or ("no output yet" if is_call(item) else "done")
    return Fact(f"Tool {name}", f"{asked} → {said}" if asked else said)


def _line(text: str, max_tokens: int) -> str:
    """A text on one line, and not too long."""
    return clip(" ".join(text.split()), max_tokens)
