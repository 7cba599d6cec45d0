"""Helpers for the tests of the offline extractor."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from recollect.memory.conversation import Message
from recollect.memory.entry import Entry
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Modification

SAID_ON = datetime(2023, 5, 25, 13, tzinfo=UTC)  # a Thursday


def excerpt_of(*said: str, on: datetime = SAID_ON) -> Excerpt:
    """Messages of the user; those that begin with `assistant:` or `system:` are by these."""
    return Excerpt("agent", "user", tuple(_message(place, text, on) for place, text in enumerate(said)))


def _message(place: int, text: str, on: datetime) -> Message:
    for role in ("assistant", "system"):
        if text.startswith(f"{role}> "):
            return Message(role, text.removeprefix(f"{role}> "), f"m{place}", place, on)  # type: ignore[arg-type]
    return Message("user", text, f"m{place}", place, on)


def answer_of(*said: str, on: datetime = SAID_ON, known: tuple[Entry, ...] = ()) -> Answer[Modification]:
    """The answer of the first stage, which has the mind, too."""
    excerpt = replace(excerpt_of(*said, on=on), known=known)
    return asyncio.run(OfflineExtractor().modification(excerpt))


def modification_of(*said: str, on: datetime = SAID_ON, known: tuple[Entry, ...] = ()) -> Modification:
    """The result of the first stage."""
    return answer_of(*said, on=on, known=known).value


def candidates(*said: str, on: datetime = SAID_ON) -> list[Candidate]:
    """All that is found."""
    found = modification_of(*said, on=on)
    return [*found.candidates, *(found.mind.candidates if found.mind else ())]


def texts(*said: str, on: datetime = SAID_ON) -> list[str]:
    """The texts of all that is found."""
    return [candidate.text for candidate in candidates(*said, on=on)]


def only(*said: str, on: datetime = SAID_ON) -> Candidate:
    """The one thing that is found."""
    (candidate,) = candidates(*said, on=on)
    return candidate
