"""Helpers for the tests of the offline extractor."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.memory.conversation import Message
from recollect.memory.entry import ContentType, Entry
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Candidate, Decision, Excerpt, Mind, Modification

SAID_ON = datetime(2023, 5, 25, 13, tzinfo=UTC)  # a Thursday


def excerpt_of(*said: str, on: datetime = SAID_ON) -> Excerpt:
    """Messages of the user; those that begin with `assistant:` or `system:` are by these."""
    return Excerpt("agent", "user", tuple(_message(place, text, on) for place, text in enumerate(said)))


def _message(place: int, text: str, on: datetime) -> Message:
    for role in ("assistant", "system"):
        if text.startswith(f"{role}> "):
            return Message(role, text.removeprefix(f"{role}> "), f"m{place}", place, on)  # type: ignore[arg-type]
    return Message("user", text, f"m{place}", place, on)


def modification(*said: str, on: datetime = SAID_ON) -> Modification:
    """The answer of the first stage."""
    return asyncio.run(OfflineExtractor().modification(excerpt_of(*said, on=on))).value


def mind(*said: str, known: Sequence[Entry] = (), on: datetime = SAID_ON) -> Mind:
    """The answer of the third stage."""
    return asyncio.run(OfflineExtractor().mind(excerpt_of(*said, on=on), known)).value


def candidates(*said: str, on: datetime = SAID_ON) -> list[Candidate]:
    """All that is found."""
    return [*modification(*said, on=on).candidates, *mind(*said, on=on).candidates]


def texts(*said: str, on: datetime = SAID_ON) -> list[str]:
    """The texts of all that is found."""
    return [candidate.text for candidate in candidates(*said, on=on)]


def only(*said: str, on: datetime = SAID_ON) -> Candidate:
    """The one thing that is found."""
    (candidate,) = candidates(*said, on=on)
    return candidate


def entry(text: str, content_id: str = "known", content_type: ContentType = "profile") -> Entry:
    """Something that is known."""
    return Entry(content_id, "memory", content_type, text, SAID_ON)


def decisions(said: str, *known: Entry) -> list[Decision]:
    """What becomes of what is said, given what is known."""
    extractor, excerpt = OfflineExtractor(), excerpt_of(said)
    found = asyncio.run(extractor.modification(excerpt)).value.candidates
    return list(asyncio.run(extractor.update(excerpt, found, known)).value.decisions)
