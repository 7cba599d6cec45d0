"""The three stages of the pipeline by rule, in English and Chinese: no model, always the same answer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..conversation import Message
from ..entry import Entry
from ..facts.stances import takes_back
from ..pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update
from ..texts.similarity import mean_the_same, meaning_of, says_more
from .decisions import Held, Known, decide
from .messages import correction_in, read_message
from .sentences import split_sentences

_AT_ONCE = 20  # messages, before others get their turn
_LONG = 2000  # characters of a message; a shorter one is read whole, and at once
_BEFORE = 10  # messages before, in which something may stand that is corrected now
_TOLD = 50  # candidates that are told in words


class OfflineExtractor:
    """Finds what is worth knowing without a model."""

    model = "offline"

    def __init__(self) -> None:
        # Two stages read the same messages. What was read is held for as long as its excerpt is.
        self._read: WeakKeyDictionary[Excerpt, list[Candidate]] = WeakKeyDictionary()

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """First-person statements and dated happenings in the user's messages."""
        found = [each for each in await self._candidates(excerpt) if _is_given_first(each)]
        left_out = await _count_left_out(excerpt)
        data = {"sentences_left_out": left_out} if left_out else {}
        return Answer(Modification(_in_words(found) or "Nothing new.", tuple(found)), data=data)

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002  # the seam gives it to those who read it again
        candidates: Sequence[Candidate],
        known: Sequence[Entry],
    ) -> Answer[Update]:
        """Whether each is added, takes the place of what is known, or adds nothing."""
        decisions = []
        for decision in decide(candidates, known, await _taken_back(candidates)):
            await _give_way(decision.candidate)
            decisions.append(decision)
        return Answer(Update(tuple(decisions)))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """Feelings, wishes and opinions in the user's messages that are not known yet."""
        found = [each for each in await self._candidates(excerpt) if not _is_given_first(each)]
        new = _not_known(found, known)
        return Answer(Mind(_in_words(new), _confidence(new), tuple(new)))

    async def _candidates(self, excerpt: Excerpt) -> list[Candidate]:
        if excerpt not in self._read:
            read = [each async for each in _read(excerpt)]
            gone = await _taken_back(read)
            # Of two feelings that contradict each other the latter holds: the last stage cannot decide that.
            self._read[excerpt] = [
                each for place, each in enumerate(read) if each.content_type != "mind" or place not in gone
            ]
        return self._read[excerpt]

    async def aclose(self) -> None:
        """Nothing is held."""


async def _give_way(number: int) -> None:
    """Let others have their turn, now and then: all this is work for the processor."""
    if number % _AT_ONCE == 0:
        await asyncio.sleep(0)


async def _read(excerpt: Excerpt) -> AsyncIterator[Candidate]:
    """What is worth knowing in the user's messages, each thing once."""
    seen = Known()
    before = excerpt.before[-1] if excerpt.before else None
    slotted = _last_with_slot([each for each in excerpt.before[-_BEFORE:] if excerpt.is_users(each)])
    for number, message in enumerate(excerpt.messages):
        await _give_way(number)
        found = await _found_in(message, before, slotted) if excerpt.is_users(message) else []
        for candidate in found:
            slotted = candidate if candidate.slot else slotted
            if seen.same_as(candidate.text) is None:
                seen.add(f"{number}/{candidate.text}", candidate.text)
                yield candidate
        before = message


async def _found_in(message: Message, before: Message | None, slotted: Candidate | None) -> list[Candidate]:
    """The candidates of a message; a long one is read in a thread, so that others do not wait."""
    if len(message.content) > _LONG:
        return await asyncio.to_thread(_candidates_of, message, before, slotted)
    return _candidates_of(message, before, slotted)


async def _count_left_out(excerpt: Excerpt) -> int:
    """How many sentences of the user are not read, because a message has too many."""
    texts = [message.content for message in excerpt.messages if excerpt.is_users(message)]
    split = [await asyncio.to_thread(split_sentences, text) for text in texts if len(text) > _LONG]
    return sum(each.left_out for each in split)


async def _taken_back(candidates: Sequence[Candidate]) -> set[int]:
    """The places of the candidates that a later one takes back."""
    held, places = Held(), set[int]()
    for place, candidate in enumerate(candidates):
        await _give_way(place)
        places.update(map(int, held.taken_back_by(candidate, meaning_of(candidate.text))))
        held.add(str(place), candidate)
    return places


def _last_with_slot(before: Sequence[Message]) -> Candidate | None:
    """What the user said before that could now be corrected; it is not cited, for it was taken in then."""
    found = [each for message in before for each in read_message(message, None)]
    last = next((candidate for candidate in reversed(found) if candidate.slot), None)
    return replace(last, evidence=()) if last else None


def _candidates_of(message: Message, before: Message | None, slotted: Candidate | None) -> list[Candidate]:
    correction = correction_in(message, slotted)
    if correction is None:
        return read_message(message, before)
    rest = read_message(correction.rest, before) if correction.rest else []
    return [*(each for each in rest if each.text != correction.told.text), correction.corrected]


def _is_given_first(candidate: Candidate) -> bool:
    """Whether it belongs to the first stage: also what takes a feeling back, which only the second can do."""
    return candidate.content_type != "mind" or takes_back(candidate.text)


def _not_known(candidates: Sequence[Candidate], known: Sequence[Entry]) -> list[Candidate]:
    index = Known()
    for entry in known:
        if entry.retired_at is None:
            index.add(entry.content_id, entry.text)
    return [candidate for candidate in candidates if not _is_known(candidate, index)]


def _is_known(candidate: Candidate, index: Known) -> bool:
    meaning = meaning_of(candidate.text)
    return any(mean_the_same(meaning, other) or says_more(other, meaning) for _, other in index.near(meaning))


def _in_words(candidates: Sequence[Candidate]) -> str:
    return "\n".join(f"- {candidate.text}" for candidate in candidates[:_TOLD])


def _confidence(candidates: Sequence[Candidate]) -> float | None:
    """The mean of what is believed of each; `None` where there is nothing to believe."""
    if not candidates:
        return None
    return round(sum(candidate.confidence for candidate in candidates) / len(candidates), 2)
