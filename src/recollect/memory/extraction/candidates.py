"""Make candidates of the entries of a response: messages and entries for their numbers, slots and dates.

Whether a candidate is kept is not decided here: `pipeline/grounding.py` decides, for every extractor.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

from ..conversation import Message
from ..entry import ContentType, Entry
from ..facts.clauses import slot_in
from ..facts.slots import Slot
from ..offline.chinese_dates import chinese_moments_in
from ..offline.dates import moments_in
from ..pipeline.grounding import significant_terms
from ..pipeline.stages import MOST_EVIDENCE, Candidate, Excerpt
from .quotes import numbered_messages
from .responses import Draft

Trust = Literal["high", "low"]
"""How far the answers of a model are taken as they are: `high` for large models, `low` for small ones."""

_LONGEST_QUOTE = 300
_MOST_NAMED = 20  # known entries of one operation
_CJK = re.compile("[\u3400-\u9fff]")
_THAT_DAY = re.compile(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening)|just|now)\b|今[天早晚日]|刚|现在", re.IGNORECASE
)


def to_candidates(
    drafts: Sequence[Draft], excerpt: Excerpt, trust: Trust = "low", kinds: Iterable[str] = ()
) -> list[Candidate]:
    """The candidates of a response, with the ids of cited messages and replaced entries for their numbers.

    `kinds` are those of the application. With high trust, the dates and the replaced entries are those that
    the model names.
    """
    sources, known = _Sources(excerpt), excerpt.known
    found = [(sources.quoted(draft), sources.cited_by(draft)) for draft in drafts]
    read = _trusted_candidate if trust == "high" else _candidate
    own = {kind.lower(): kind for kind in kinds}
    return [
        replace(
            _of_kind(read(draft, cited, known), own.get(draft.kind)),
            shakes=tuple(entry.content_id for entry in _at(draft.doubted, known)),
        )
        for draft, cited in found
    ]


def to_mind(drafts: Sequence[Draft], known: Sequence[Entry]) -> tuple[list[Candidate], tuple[str, ...]]:
    """The inferences of a response, and the ids of the known entries that it ends."""
    ended = [entry for draft in drafts if draft.operation == "end" for entry in _at(draft.replaced, known)]
    inferences = [
        Candidate(
            "mind",
            draft.text,
            (),
            draft.confidence,
            data={"about": draft.kind} if draft.kind else {},
            replaces=tuple(entry.content_id for entry in _at(draft.replaced, known)),
            rests_on=tuple(entry.content_id for entry in _at(draft.grounds, known)),
        )
        for draft in drafts
        if draft.operation != "end"
    ]
    return inferences, tuple(entry.content_id for entry in ended)


def _of_kind(candidate: Candidate, kind: str | None) -> Candidate:
    """A candidate of a kind of the application: a profile entry that says its kind."""
    if kind is None:
        return candidate
    return replace(candidate, content_type="profile", data={**candidate.data, "kind": kind})


def _trusted_candidate(draft: Draft, cited: Sequence[Message], known: Sequence[Entry]) -> Candidate:
    """A candidate as the model wrote it."""
    replaced = _at(draft.replaced, known)
    confirms = replaced[0].content_id if replaced and draft.operation == "confirm" else ""
    is_end = draft.operation == "end" and bool(replaced)
    kind = replaced[0].content_type if is_end else draft.content_type
    return Candidate(
        kind,
        draft.text,
        tuple(message.message_id for message in cited),
        draft.confidence,
        draft.date,
        draft.until,
        data={**_data_of(kind, draft.date, None, cited), **({"ended": True} if is_end else {})},
        quote=draft.quote,
        quotes=draft.quotes,
        replaces=() if confirms else tuple(entry.content_id for entry in replaced),
        confirms=confirms,
        expires_at=_expiry_of(kind, draft, cited),
        is_trusted=True,
    )


def _at(places: Iterable[int], known: Sequence[Entry]) -> list[Entry]:
    """The known entries at some places. A number that was not given to the model names none.

    No operation changes more than some: a model in a loop would name all.
    """
    return [known[place] for place in places if place < len(known)][:_MOST_NAMED]


class _Sources:
    """The messages that can be cited: those of the user."""

    def __init__(self, excerpt: Excerpt) -> None:
        self._messages = numbered_messages(excerpt)

    def cited_by(self, draft: Draft) -> list[Message]:
        """The cited messages; those that are most similar if the model gives no quote."""
        cited = [self._messages[place] for place in draft.cited if place < len(self._messages)]
        if not draft.quote:
            nearest = self._nearest(draft.text)
            cited = [message for message in nearest if message in cited] or nearest
        return cited[:MOST_EVIDENCE]

    def quoted(self, draft: Draft) -> Draft:
        """The entry with a quote: without one of the model, it rests on the whole message that it cites.

        If it cites none, the quote is its own text, which is in no message.
        """
        if draft.quote:
            return draft
        cited = self.cited_by(draft)
        return replace(draft, quote=cited[0].content[:_LONGEST_QUOTE] if cited else draft.text)

    def _nearest(self, text: str) -> list[Message]:
        """The messages that share most terms with a text, in their order."""
        shared = Counter(place for term in significant_terms(text) for place in self._places.get(term, ()))
        most = max(shared.values(), default=0)
        return [self._messages[place] for place in sorted(shared) if shared[place] == most]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """For each term, the indexes of the messages that contain it."""
        places: dict[str, list[int]] = {}
        for place, message in enumerate(self._messages):
            for term in significant_terms(message.content):
                places.setdefault(term, []).append(place)
        return places


def _candidate(draft: Draft, cited: Sequence[Message], known: Sequence[Entry]) -> Candidate:
    slot = slot_in(draft.text) if draft.content_type in ("profile", "event") else None
    # A new home or job is a fact that holds from its date on, even if a model calls it an event.
    content_type: ContentType = "profile" if slot else draft.content_type
    date = _date_of(draft, cited)
    return Candidate(
        content_type,
        draft.text,
        tuple(message.message_id for message in cited),
        draft.confidence,
        date,
        draft.until,
        slot.name if slot else None,
        _data_of(content_type, date, slot, cited),
        quote=draft.quote,
        quotes=draft.quotes,
        replaces=tuple(entry.content_id for entry in _at(draft.replaced, known)),
        expires_at=_expiry_of(content_type, draft, cited),
    )


def _expiry_of(content_type: ContentType, draft: Draft, cited: Sequence[Message]) -> str | None:
    """Until when it holds. What has happened, or ends on the day it is said or before, does not expire."""
    until = draft.expires_at or draft.until
    if content_type == "event" or until is None:
        return None
    said_on = max((message.created_at.date().isoformat() for message in cited), default="")
    return until if until > said_on[: len(until)] else None


def _date_of(draft: Draft, cited: Sequence[Message]) -> str | None:
    """The date of an entry: the one that the quote names, by rule, or else the one that the model gives.

    Small models date everything on the day on which it was said. Without a word for that day, it is no date.
    """
    if not cited:
        return draft.date
    said_on = cited[0].created_at.date()
    named = _date_in(draft.quote, said_on)
    if named is not None:
        is_right = (
            draft.date is not None and draft.date[4:] == named[4:] and draft.date != said_on.isoformat()
        )
        return draft.date if is_right else named  # a model may know the year better
    is_said = draft.date == said_on.isoformat() and not _THAT_DAY.search(draft.quote)
    return None if is_said else draft.date


def _date_in(quote: str, said_on: date) -> str | None:
    """The date that a quote names; `None` if it names none or several."""
    found = chinese_moments_in(quote, said_on) if _CJK.search(quote) else moments_in(quote, said_on)
    return found[0].value if len(found) == 1 else None


def _data_of(
    content_type: ContentType, date: str | None, slot: Slot | None, cited: Sequence[Message]
) -> dict[str, Any]:
    """For an event its date, and the date of the message that mentions it; for a slot its value."""
    if content_type != "event" or not cited:
        return {"slot": slot.name, "value": slot.value} if slot else {}
    said_on = {"said_on": cited[0].created_at.date().isoformat()}
    return said_on if date is None else {"date": date, **said_on}
