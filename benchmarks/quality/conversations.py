"""The LoCoMo conversations: each of the two speakers as a user of their own, and what is asked about them.

The data is not ours to pass on: `RECOLLECT_LOCOMO` says where the file is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.memory.conversation import Message

TEMPORAL, ADVERSARIAL = 2, 5
_DIALOGUE_ID = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Question:
    """What is asked, and the turns that hold the answer."""

    answer: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Spoken:
    """A conversation of two people over many sessions."""

    name: str
    speakers: tuple[str, str]
    sessions: tuple[tuple[datetime, tuple[Mapping[str, Any], ...]], ...]
    questions: tuple[Question, ...]
    observed: frozenset[str]
    """The turns that the data set's own observations cite."""

    @property
    def turns(self) -> int:
        """How many turns were spoken."""
        return sum(len(lines) for _, lines in self.sessions)

    def as_user(self, speaker: str) -> Iterator[tuple[Message, ...]]:
        """The sessions with this speaker as the user, and the other as the assistant."""
        for said_at, lines in self.sessions:
            yield tuple(_message(line, speaker, place, said_at) for place, line in enumerate(lines))


def load(path: Path) -> list[Spoken]:
    """All conversations of a file."""
    return [_spoken(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _spoken(sample: Mapping[str, Any]) -> Spoken:
    said = sample["conversation"]
    names = sorted((name for name in said if re.fullmatch(r"session_\d+", name)), key=_number)
    turns = frozenset(line["dia_id"] for name in names for line in said[name])
    return Spoken(
        sample["sample_id"],
        (said["speaker_a"], said["speaker_b"]),
        tuple((_time(said[f"{name}_date_time"]), tuple(said[name])) for name in names),
        tuple(_question(asked, turns) for asked in sample["qa"]),
        _ids(json.dumps(sample["observation"])) & turns,
    )


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _time(told: str) -> datetime:
    return datetime.strptime(told, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _question(asked: Mapping[str, Any], turns: frozenset[str]) -> Question:
    return Question(
        str(asked.get("answer", "")), asked["category"], _ids(" ".join(asked["evidence"])) & turns
    )


def _ids(text: str) -> frozenset[str]:
    return frozenset(f"D{session}:{line}" for session, line in _DIALOGUE_ID.findall(text))


def _message(line: Mapping[str, Any], speaker: str, place: int, said_at: datetime) -> Message:
    caption = line.get("blip_caption")
    content = line["text"] + (f" [image: {caption}]" if caption else "")
    role = "user" if line["speaker"] == speaker else "assistant"
    return Message(role, content, line["dia_id"], place, said_at)
