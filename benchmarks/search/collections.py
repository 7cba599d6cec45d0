"""Collections: recorded conversations with questions whose answers are known. Two formats are read."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.errors import ImportFormatError, InvalidTypeError, InvalidValueError
from recollect.memory.conversation import Message, read_messages
from recollect.memory.times import check_said, now, read_time

NO_KIND = "other"
"""The kind of a question that names none."""


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the messages that hold its answer."""

    text: str = field(repr=False)
    evidence: frozenset[str]
    kind: str = NO_KIND
    outdated: frozenset[str] = frozenset()
    """The ids of messages that held an answer once, and that a later message replaced."""


@dataclass(frozen=True)
class Session:
    """Messages of one conversation, and when it began."""

    time: datetime
    messages: tuple[Message, ...] = field(repr=False)


@dataclass(frozen=True)
class Sample:
    """Everything that one user said, and questions about it. Message ids are unique within a sample."""

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def session_of(self) -> Mapping[str, int]:
        """The number of the session of each message."""
        return {
            message.message_id: number
            for number, session in enumerate(self.sessions)
            for message in session.messages
        }

    @property
    def user_id(self) -> str:
        """The name of the user if all messages of the role `user` have the same one, else `user`."""
        names = {each.name for session in self.sessions for each in session.messages if each.role == "user"}
        name = names.pop() if len(names) == 1 else None
        return name or "user"

    def without_names(self) -> "Sample":
        """The sample with messages that say only the role of their speaker."""
        sessions = tuple(
            replace(session, messages=tuple(replace(message, name=None) for message in session.messages))
            for session in self.sessions
        )
        return replace(self, sessions=sessions)

    def with_questions(self, most: int | None) -> "Sample":
        """The sample with at most so many of its questions, taken evenly."""
        count = len(self.questions)
        if most is None or most >= count:
            return self
        return replace(self, questions=tuple(self.questions[place * count // most] for place in range(most)))


def read_collection(path: Path) -> list[Sample]:
    """The samples of a file. A file that cannot be measured is an `ImportFormatError` that says why."""
    samples = _read_json(path)
    if not isinstance(samples, list) or not samples:
        raise ImportFormatError(f"{path} must hold a list of samples")
    read = [_read_sample(f"{path}: sample {place}", each) for place, each in enumerate(samples)]
    if not any(sample.questions for sample in read):
        raise ImportFormatError(f"{path} has no questions with evidence")
    return read


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"{path} is not JSON") from error


def _read_sample(place: str, given: Any) -> Sample:
    sample = _object(place, given)
    if "conversation" in sample and "qa" in sample:
        return read_locomo(place, sample)
    sessions = [
        _read_session(f"{place}, session {number}", each)
        for number, each in enumerate(_list(place, sample, "sessions"))
    ]
    _check_ids(place, sessions)
    known = {message.message_id for session in sessions for message in session.messages}
    questions = [
        _read_question(f"{place}, question {number}", each, known)
        for number, each in enumerate(_list(place, sample, "questions"))
    ]
    return Sample(str(sample.get("id", place)), tuple(sessions), tuple(questions))


def _read_session(place: str, given: Any) -> Session:
    session = _object(place, given)
    messages = [_object(f"{place}, message", each) for each in _list(place, session, "messages")]
    if not messages:
        raise ImportFormatError(f"{place} has no messages")
    fields = [{key: each.get(key) for key in ("role", "name", "content")} for each in messages]
    try:
        time = check_said("time", read_time("time", _text(place, session, "time")) or now())
        named = [
            {"message_id": _text(f"{place}, message {number}", each, "id"), **its}
            for number, (each, its) in enumerate(zip(messages, fields, strict=True))
        ]
        return Session(time, read_messages(named, time))
    except (InvalidTypeError, InvalidValueError) as error:
        raise ImportFormatError(f"{place}: {error}") from error


def _check_ids(place: str, sessions: Sequence[Session]) -> None:
    seen: set[str] = set()
    for message in (message for session in sessions for message in session.messages):
        if message.message_id in seen:
            raise ImportFormatError(f"{place} has two messages with the id {message.message_id!r}")
        seen.add(message.message_id)


def _read_question(place: str, given: Any, known: set[str]) -> Question:
    question = _object(place, given)
    evidence = _list(place, question, "evidence")
    if not evidence or not all(isinstance(each, str) for each in evidence):
        raise ImportFormatError(f"{place}: evidence must be the ids of one message or more")
    if missing := sorted(set(evidence) - known):
        raise ImportFormatError(f"{place}: evidence names {missing[0]!r}, which is no message of the sample")
    outdated = question.get("outdated") or []
    if not isinstance(outdated, list) or not known.issuperset(map(str, outdated)):
        raise ImportFormatError(f"{place}: outdated must be ids of messages of the sample")
    kind = str(question.get("kind") or NO_KIND)
    return Question(_text(place, question, "text"), frozenset(evidence), kind, frozenset(outdated))


def _object(place: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ImportFormatError(f"{place} must be an object, not {type(given).__name__}")
    return given


def _list(place: str, given: Mapping[str, Any], name: str) -> list[Any]:
    value = given.get(name)
    if not isinstance(value, list):
        raise ImportFormatError(f"{place}: {name} must be a list")
    return value


def _text(place: str, given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ImportFormatError(f"{place}: {name} must be a text that is not empty")
    return value


# --- LoCoMo as it is published ---

_LOCOMO_KINDS: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_TURN = re.compile(r"D:?(\d+):(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"


def read_locomo(place: str, given: Mapping[str, Any]) -> Sample:
    """A sample as LoCoMo is published, with the questions of the categories 1 to 4 whose evidence exists."""
    try:
        conversation = given["conversation"]
        sessions = tuple(_locomo_sessions(conversation))
        _check_ids(place, sessions)
        known = {message.message_id for session in sessions for message in session.messages}
        questions = [_locomo_question(each, known) for each in given["qa"]]
        asked = tuple(each for each in questions if each.evidence and each.kind != NO_KIND)
        return Sample(str(given.get("sample_id", place)), sessions, asked)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ImportFormatError(f"{place} is not a LoCoMo sample as published") from error


def _locomo_sessions(conversation: Mapping[str, Any]) -> Iterator[Session]:
    for number in range(1, len(conversation) + 1):
        name = f"session_{number}"
        if not conversation.get(name):
            continue
        time = datetime.strptime(conversation[f"{name}_date_time"], _TIME).replace(tzinfo=UTC)
        turns = [
            {
                "message_id": turn["dia_id"],
                "role": "user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                "name": turn["speaker"],
                "content": f"{turn.get('text') or ''} {turn.get('blip_caption') or ''}".strip(),
            }
            for turn in conversation[name]
        ]
        yield Session(time, read_messages(turns, time))


def _locomo_question(question: Mapping[str, Any], known: set[str]) -> Question:
    named = [pair for each in question["evidence"] for pair in _TURN.findall(each)]
    evidence = {f"D{int(session)}:{int(turn)}" for session, turn in named}
    kind = _LOCOMO_KINDS.get(question["category"], NO_KIND)
    return Question(question["question"], frozenset(evidence & known), kind)
