"""What is left of the evidence in the LoCoMo conversations when the model sees less of them.

The data is not ours to pass on: `RECOLLECT_LOCOMO` says where the file is. Without it these measures are
left out. A question's evidence is visible if the turns that hold it are in the view, word for word, or a
sentence of theirs is in the summary.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recollect.items import estimate_tokens
from recollect.sessions.in_memory import InMemorySession
from recollect.strategies.session import StrategySession
from recollect.strategies.values import Strategy, Summarize, Trim

from ..harness import Measure, Metric, Sample, Sampler

Item = dict[str, Any]

METRICS = (
    Metric("tokens before", "tokens"),
    Metric("tokens after", "tokens"),
    Metric("turns shown", "turns"),
    Metric("evidence", "%", more_is_better=True),
)
TARGETS = (25, 50, 75)
_DIALOGUE_ID = re.compile(r"D:?(\d+):(\d+)")
_SHORTEST_SENTENCE = 20  # characters: shorter ones say nothing for certain
BASE = "trim"
WAYS: dict[str, Strategy] = {
    BASE: Trim(1),
    "summarize, 300 tokens": Summarize(1, summary_max_tokens=300),
    "summarize, 1500 tokens": Summarize(1, summary_max_tokens=1500),
}


@dataclass(frozen=True)
class Conversation:
    """The turns as items, and for each question the numbers of the items that hold its answer."""

    items: list[Item]
    evidence: list[set[int]]


def evidence() -> list[Measure]:
    """How few tokens show a share of the evidence, under each strategy; nothing if there is no data."""
    path = os.environ.get("RECOLLECT_LOCOMO")
    if not path:
        return []
    conversations = [_conversation(sample) for sample in json.loads(Path(path).read_text(encoding="utf-8"))]
    return [_measure(conversations, target) for target in TARGETS]


def _conversation(sample: dict[str, Any]) -> Conversation:
    spoken = sample["conversation"]
    sessions = sorted((name for name in spoken if re.fullmatch(r"session_\d+", name)), key=_number)
    said = [line for name in sessions for line in spoken[name]]
    roles = {spoken["speaker_a"]: "user", spoken["speaker_b"]: "assistant"}
    items = [{"role": roles[line["speaker"]], "content": line["text"]} for line in said]
    number_of = {line["dia_id"]: number for number, line in enumerate(said)}
    found = [_evidence_of(question, number_of) for question in sample["qa"] if question["category"] != 5]
    return Conversation(items, [numbers for numbers in found if numbers])


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _evidence_of(question: dict[str, Any], number_of: Mapping[str, int]) -> set[int]:
    ids = (f"D{session}:{line}" for session, line in _DIALOGUE_ID.findall(" ".join(question["evidence"])))
    return {number_of[dialogue_id] for dialogue_id in ids if dialogue_id in number_of}


def _measure(conversations: list[Conversation], target: int) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: _sampler(conversations, way, target) for name, way in WAYS.items()}

    what = f"the smallest views of {len(conversations)} conversations that show {target} % of the evidence"
    return Measure(f"evidence-{target}", what, METRICS, 1, open_all, (BASE,), warm_up=False)


def _sampler(conversations: list[Conversation], way: Any, target: int) -> Sampler:
    async def sample() -> Sample:
        found = [await _smallest(conversation, way, target) for conversation in conversations]
        return {metric.name: sum(one[metric.name] for one in found) / len(found) for metric in METRICS}

    return sample


async def _smallest(conversation: Conversation, way: Any, target: int) -> dict[str, float]:
    """Keep as few turns as show enough; more turns never show less, as far as that can be relied on."""
    low, high = 1, sum(item["role"] == "user" for item in conversation.items)
    best = await _shown(conversation, way, high)
    while low < high:
        middle = (low + high) // 2
        tried = await _shown(conversation, way, middle)
        if tried["evidence"] >= target:
            best, high = tried, middle
        else:
            low = middle + 1
    return best


async def _shown(conversation: Conversation, way: Any, turns: int) -> dict[str, float]:
    session = StrategySession(InMemorySession("s"), replace(way, max_user_turns=turns))
    await session.add_items(conversation.items)
    view = await session.get_items()
    kept = _items_kept(conversation.items, view)
    summary = view[1]["content"] if len(view) > kept else ""
    first = len(conversation.items) - kept
    visible = [_is_visible(conversation, numbers, first, summary) for numbers in conversation.evidence]
    return {
        "tokens before": estimate_tokens(conversation.items),
        "tokens after": estimate_tokens(view),
        "turns shown": turns,
        "evidence": 100 * sum(visible) / len(visible),
    }


def _items_kept(items: list[Item], view: list[Item]) -> int:
    """How many items at the end of the conversation the view shows."""
    return next(
        count
        for count in range(len(view), -1, -1)
        if view[len(view) - count :] == items[len(items) - count :]
    )


def _is_visible(conversation: Conversation, numbers: set[int], first: int, summary: str) -> bool:
    return all(number >= first or _is_told(conversation.items[number], summary) for number in numbers)


def _is_told(item: Item, summary: str) -> bool:
    sentences = re.split(r"(?<=[.!?])\s+", item["content"])
    return any(sentence in summary for sentence in sentences if len(sentence) >= _SHORTEST_SENTENCE)
