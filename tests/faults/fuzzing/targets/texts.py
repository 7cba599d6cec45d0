"""Texts that people write: questions that search has to understand, and messages to learn from."""

import json
from collections.abc import Coroutine
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from recollect.memory.conversation import Message
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Candidate, Excerpt
from recollect.memory.search.corpus import Corpus
from recollect.memory.search.documents import Document
from recollect.memory.search.query import LONGEST, understand
from recollect.memory.search.ranking import rank
from recollect.memory.texts.terms import terms

from ..supply import Supply

_T = TypeVar("_T")
_SAID = datetime(2024, 2, 29, 12, tzinfo=UTC)
_TODAY = date(2024, 2, 29)
_TEXTS = (
    "Ada moved to Lisbon in April 2024.",
    "我住在北京，喜欢下雨天。",
    'She said "never again" on 7 May 2023!',
    "",
    "😀 \ud800 2024-05-07",
    "I'm allergic to peanuts",
)


def _document(number: int, text: str) -> Document:
    said = datetime(2024, 1 + number, 1, tzinfo=UTC)
    return Document(str(number), text, "Ada", str(number % 2), number, said)


_CORPUS = Corpus(_document(number, text) for number, text in enumerate(_TEXTS))


def check_questions(data: bytes) -> None:
    """Any text is a question: it is understood somehow, and what it finds has scores that are numbers."""
    text = data.decode("utf-8", "surrogateescape")
    query = understand(text, _CORPUS.speakers, today=_TODAY)
    assert len(query.text) <= LONGEST
    assert all(terms(text) or not term for term in query.terms)
    found = rank(query, _CORPUS, limit=4)
    hits = found.hits
    assert len(hits) <= 4
    assert 0 <= found.relevance <= 1
    assert all(0 <= hit.score <= found.relevance for hit in hits)
    assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]


def check_learning(data: bytes) -> None:
    """Whatever a user says can be learned from by rule, and what comes of it can be stored."""
    supply = Supply(data)
    count = 1 + supply.number(3)
    said = [part.decode("utf-8", "replace") for part in supply.rest().split(b"\xff", count)]
    messages = tuple(_message(n, text) for n, text in enumerate(said) if text.strip())
    excerpt = Excerpt("agent", "user", messages[1:], messages[:1])
    for candidate in _finished(_learned(excerpt)):
        assert candidate.text.strip()
        candidate.text.encode()
        json.dumps(dict(candidate.data))
        assert 0 <= candidate.confidence <= 1


def _message(number: int, text: str) -> Message:
    return Message(role="user", content=text, message_id=str(number), message_index=number, created_at=_SAID)


async def _learned(excerpt: Excerpt) -> list[Candidate]:
    extractor = OfflineExtractor()
    found = (await extractor.modification(excerpt)).value.candidates
    await extractor.update(excerpt, found, ())
    return [*found, *(await extractor.mind(excerpt, ())).value.candidates]


def _finished(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """What it comes to: it waits for nobody, and to make an event loop for it would take longer than it."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as ended:
            result: _T = ended.value
            return result
