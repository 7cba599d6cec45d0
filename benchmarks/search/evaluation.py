"""Ranking quality: pure functions over questions with known answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import log2
from typing import Any

from recollect.errors import ImportFormatError
from recollect.memory.search.documents import Document

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_TURN = re.compile(r"D:?(\d+):(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"
_NOT_LOCOMO = "this is not a LoCoMo file: expected the published list of samples"
_TURN_CUTS = (5, 10, 20, 50)


@dataclass(frozen=True)
class Question:
    """A question, and the turns that contain its answer."""

    text: str = field(repr=False)
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Sample:
    """A conversation of several sessions, and questions about it."""

    speakers: tuple[str, ...]
    turns: tuple[Document, ...] = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)


@dataclass(frozen=True)
class Found:
    """The results for a question, best first, and the time it took."""

    question: Question
    turns: Sequence[str]
    sessions: Sequence[str]
    seconds: float


def read_locomo(samples: Any) -> list[Sample]:
    """Parse a LoCoMo file: samples with the questions of categories 1 to 4 whose evidence names turns."""
    try:
        if isinstance(samples, list):
            return [_read_sample(sample) for sample in samples]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ImportFormatError(_NOT_LOCOMO) from error
    raise ImportFormatError(_NOT_LOCOMO)


def _read_sample(sample: Mapping[str, Any]) -> Sample:
    conversation = sample["conversation"]
    turns = tuple(
        turn
        for number in range(1, len(conversation) + 1)
        for turn in _read_session(conversation, f"session_{number}")
    )
    known = {turn.id for turn in turns}
    questions = (
        _read_question(question, known) for question in sample["qa"] if question["category"] in CATEGORIES
    )
    return Sample(
        (conversation["speaker_a"], conversation["speaker_b"]),
        turns,
        tuple(question for question in questions if question.evidence),
    )


def _read_session(conversation: Mapping[str, Any], name: str) -> list[Document]:
    if name not in conversation:
        return []
    time = datetime.strptime(conversation[f"{name}_date_time"], _TIME).replace(tzinfo=UTC)
    return [
        Document(
            turn["dia_id"],
            f"{turn.get('text') or ''} {turn.get('blip_caption') or ''}".strip(),
            speaker=turn["speaker"],
            session=name,
            position=position,
            time=time,
        )
        for position, turn in enumerate(conversation[name])
    ]


def _read_question(question: Mapping[str, Any], known: set[str]) -> Question:
    named = [pair for each in question["evidence"] for pair in _TURN.findall(each)]
    evidence = {f"D{int(session)}:{int(turn)}" for session, turn in named}
    return Question(question["question"], question["category"], frozenset(evidence & known))


def session_of(turn: str) -> str:
    """Return the session of a LoCoMo turn."""
    return f"session_{turn[1:].partition(':')[0]}"


def figures(found: Sequence[Found]) -> dict[str, float]:
    """Return the mean figures over the questions."""
    per_question = [_figures_of(each) for each in found]
    names = per_question[0] if per_question else {}
    return {name: sum(each[name] for each in per_question) / len(per_question) for name in names}


def figures_by_category(found: Sequence[Found]) -> dict[str, dict[str, float]]:
    """Return the mean figures per category."""
    return {
        name: figures(its)
        for category, name in CATEGORIES.items()
        if (its := [each for each in found if each.question.category == category])
    }


def _figures_of(found: Found) -> dict[str, float]:
    turns = found.question.evidence
    sessions = frozenset(map(session_of, turns))
    result = {f"turn_recall@{cut}": recall(found.turns, turns, cut) for cut in _TURN_CUTS}
    result["turn_ndcg@10"] = ndcg(found.turns, turns, 10)
    result["session_hit@1"] = float(bool(found.sessions) and found.sessions[0] in sessions)
    result["session_recall@5"] = recall(found.sessions, sessions, 5)
    result["session_recall@10"] = recall(found.sessions, sessions, 10)
    result["session_ndcg@5"] = ndcg(found.sessions, sessions, 5)
    result["milliseconds"] = found.seconds * 1000
    return result


def recall(found: Sequence[str], wanted: frozenset[str], cut: int) -> float:
    """Return the share of wanted results among the first `cut`."""
    return len(wanted.intersection(found[:cut])) / len(wanted)


def ndcg(found: Sequence[str], wanted: frozenset[str], cut: int) -> float:
    """Return the normalized discounted cumulative gain of the first `cut` results."""
    gained = sum(1 / log2(place + 2) for place, each in enumerate(found[:cut]) if each in wanted)
    return gained / sum(1 / log2(place + 2) for place in range(min(cut, len(wanted))))
