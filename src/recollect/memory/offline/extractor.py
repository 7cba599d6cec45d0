"""The three stages of the pipeline by rules, in English and Chinese: no model, and always the same result."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..conversation import Message
from ..entry import Entry
from ..facts.stances import takes_back
from ..pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update
from ..texts.similarity import mean_the_same, meaning_of, says_more
from .decisions import FactIndex, TextIndex, decide
from .messages import Setting, find_correction, read_message
from .own_words import own_words
from .references import Referent, referent_in
from .requests import is_personal
from .sentences import split_sentences

_AT_ONCE = 20  # messages, before other tasks of the event loop get their turn
_LONG = 2000  # characters of a message; a shorter one is read whole, and at once
_BEFORE = 10  # earlier messages whose statements may be corrected now
_MOST_SUMMARIZED = 50  # candidates in the summary of a stage


class OfflineExtractor:
    """Finds candidates and decides about them without a model."""

    model = "offline"
    asks_no_model = True

    def __init__(self) -> None:
        # Two stages read the same messages. Their candidates are cached for the lifetime of the excerpt.
        self._read: WeakKeyDictionary[Excerpt, list[Candidate]] = WeakKeyDictionary()

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """Find first-person statements and dated happenings in the user's messages."""
        found = [each for each in await self._candidates(excerpt) if _is_first_stage(each)]
        left_out = await _count_left_out(excerpt)
        data = {"sentences_left_out": left_out} if left_out else {}
        return Answer(Modification(_summarize(found) or "Nothing new.", tuple(found)), data=data)

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002  # part of the protocol, and not needed here
        candidates: Sequence[Candidate],
        known: Sequence[Entry],
    ) -> Answer[Update]:
        """Decide whether each candidate is added, supersedes known entries, or adds nothing."""
        decisions = []
        for decision in decide(candidates, known, await _find_retracted(candidates)):
            await _yield_to_loop(decision.candidate)
            decisions.append(decision)
        return Answer(Update(tuple(decisions)))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """Find feelings, wishes and opinions in the user's messages that are not known yet."""
        found = [each for each in await self._candidates(excerpt) if not _is_first_stage(each)]
        new = _drop_known(found, known)
        return Answer(Mind(_summarize(new), _confidence(new), tuple(new)))

    async def _candidates(self, excerpt: Excerpt) -> list[Candidate]:
        if excerpt not in self._read:
            read = [each async for each in _read(excerpt)]
            gone = await _find_retracted(read)
            # Of two feelings that contradict each other the latter holds: the last stage cannot decide that.
            self._read[excerpt] = [
                each for place, each in enumerate(read) if each.content_type != "mind" or place not in gone
            ]
        return self._read[excerpt]

    async def aclose(self) -> None:
        """Nothing is held."""


async def _yield_to_loop(number: int) -> None:
    """Let others have their turn, now and then: all this is work for the processor."""
    if number % _AT_ONCE == 0:
        await asyncio.sleep(0)


async def _read(excerpt: Excerpt) -> AsyncIterator[Candidate]:
    """The candidates in the user's messages, each once."""
    seen = TextIndex()
    before = excerpt.before[-1] if excerpt.before else None
    own = [each for each in excerpt.before[-_BEFORE:] if excerpt.is_users(each)]
    said = [each.content for each in (*own, *excerpt.messages) if excerpt.is_users(each)]
    heard = [each.content for each in excerpt.messages if each.role == "assistant"]
    setting = Setting(before, is_personal(said, heard), _last_referent([each.content for each in own]))
    slotted = _last_with_slot(own)
    for number, message in enumerate(excerpt.messages):
        await _yield_to_loop(number)
        if excerpt.is_users(message):
            for candidate in await _candidates_in_thread(message, setting, slotted):
                slotted = candidate if candidate.slot else slotted
                if seen.same_as(candidate.text) is None:
                    seen.add(f"{number}/{candidate.text}", candidate.text)
                    yield candidate
            referent = _last_referent([message.content]) or setting.referent
            setting = replace(setting, referent=referent)
        setting = replace(setting, before=message)


def _last_referent(said: Sequence[str]) -> Referent | None:
    """The last somebody close to the user whom the messages name."""
    found = (referent_in(own_words(text[-_LONG:])) for text in reversed(said))
    return next(filter(None, found), None)


async def _candidates_in_thread(
    message: Message, setting: Setting, slotted: Candidate | None
) -> list[Candidate]:
    """The candidates of a message. A long message is read in a thread, so it does not block the loop."""
    if len(message.content) > _LONG:
        return await asyncio.to_thread(_candidates_of, message, setting, slotted)
    return _candidates_of(message, setting, slotted)


async def _count_left_out(excerpt: Excerpt) -> int:
    """The number of the user's sentences that are not read because a message has too many."""
    texts = [message.content for message in excerpt.messages if excerpt.is_users(message)]
    split = [await asyncio.to_thread(split_sentences, text) for text in texts if len(text) > _LONG]
    return sum(each.left_out for each in split)


async def _find_retracted(candidates: Sequence[Candidate]) -> set[int]:
    """The indexes of the candidates that a later one takes back."""
    index, places = FactIndex(), set[int]()
    for place, candidate in enumerate(candidates):
        await _yield_to_loop(place)
        places.update(map(int, index.contradicted_by(candidate, meaning_of(candidate.text))))
        index.add(str(place), candidate)
    return places


def _last_with_slot(before: Sequence[Message]) -> Candidate | None:
    """The last earlier statement with a slot, which may be corrected now.

    It has no evidence here, because an earlier run has read its message.
    """
    found = [each for message in before for each in read_message(message, Setting())]
    last = next((candidate for candidate in reversed(found) if candidate.slot), None)
    return replace(last, evidence=()) if last else None


def _candidates_of(message: Message, setting: Setting, slotted: Candidate | None) -> list[Candidate]:
    correction = find_correction(message, slotted)
    if correction is None:
        return read_message(message, setting)
    rest = read_message(correction.rest, setting) if correction.rest else []
    return [*(each for each in rest if each.text != correction.original.text), correction.corrected]


def _is_first_stage(candidate: Candidate) -> bool:
    """Whether the first stage returns it, as it does retractions of feelings, which the second applies."""
    return candidate.content_type != "mind" or takes_back(candidate.text)


def _drop_known(candidates: Sequence[Candidate], known: Sequence[Entry]) -> list[Candidate]:
    index = TextIndex()
    for entry in known:
        if entry.retired_at is None:
            index.add(entry.content_id, entry.text)
    return [candidate for candidate in candidates if not _is_known(candidate, index)]


def _is_known(candidate: Candidate, index: TextIndex) -> bool:
    meaning = meaning_of(candidate.text)
    return any(mean_the_same(meaning, other) or says_more(other, meaning) for _, other in index.near(meaning))


def _summarize(candidates: Sequence[Candidate]) -> str:
    return "\n".join(f"- {candidate.text}" for candidate in candidates[:_MOST_SUMMARIZED])


def _confidence(candidates: Sequence[Candidate]) -> float | None:
    """The mean confidence of the candidates; `None` without candidates."""
    if not candidates:
        return None
    return round(sum(candidate.confidence for candidate in candidates) / len(candidates), 2)
