"""Grounding: attach evidence to the entries of a response, and entries to its decisions.

An entry without evidence from the user is dropped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..conversation import Message
from ..pipeline.stages import MOST_EVIDENCE, Candidate, Decision, Excerpt
from ..texts.synonyms import LIGHT
from ..texts.terms import terms
from .responses import Choice, Draft

_LONGEST = 20_000  # characters of a message that are compared with an entry
_ABOUT_ASSISTANT = re.compile(
    r"(?:the |this |an )?(?:AI |AI-)?(?:assistant|chatbot|language model)(?:'s|’s)? "
    r"(?:is|was|are|has|had|can|cannot|could|will|would|should|does|did|said|says|told|tells|asked|asks|offer|"
    r"suggest|recommend|recall|remember|explain|provide|help|respond|answer|repl|confirm|mention|name)"
    r"|(?:AI)?(?:助手|助理)(?:是|会|能|可以|说|建议|推荐|记得|回答|表示|提供|帮)",
    re.IGNORECASE,
)


def numbered_messages(excerpt: Excerpt) -> list[Message]:
    """The messages with a number. System messages have none, because the model does not see them."""
    return [message for message in excerpt.messages if message.role != "system"]


@dataclass(frozen=True)
class Grounded:
    """Candidates with evidence from the user, and counts of the entries that were dropped."""

    candidates: tuple[Candidate, ...]
    without_evidence: int
    about_assistant: int


def ground(drafts: Sequence[Draft], excerpt: Excerpt) -> Grounded:
    """The candidates with their evidence. Entries without evidence from the user are dropped."""
    sources = _Sources(excerpt)
    about_user = [draft for draft in drafts if not _ABOUT_ASSISTANT.match(draft.text)]
    found = [(draft, sources.evidence_for(draft)) for draft in about_user]
    candidates = tuple(_candidate(draft, evidence) for draft, evidence in found if evidence)
    return Grounded(candidates, len(found) - len(candidates), len(drafts) - len(about_user))


class _Sources:
    """The messages that can be evidence."""

    def __init__(self, excerpt: Excerpt) -> None:
        self._excerpt = excerpt
        self._messages = numbered_messages(excerpt)

    def evidence_for(self, draft: Draft) -> list[Message]:
        """The cited messages of the user, or the most similar ones, followed by the other cited messages.

        An entry that cites only tools or other participants has no evidence.
        """
        cited = [self._messages[place] for place in draft.cited if place < len(self._messages)]
        of_user = [message for message in cited if self._excerpt.is_users(message)]
        others = [message for message in cited if not self._excerpt.is_users(message)]
        if not of_user and not any(map(self._excerpt.is_others, others)):
            of_user = self._nearest(draft.text)
        return [*of_user, *others][:MOST_EVIDENCE] if of_user else []

    def _nearest(self, text: str) -> list[Message]:
        """The messages of the user that share most terms with a text, in their order."""
        shared = Counter(place for term in _significant_terms(text) for place in self._places.get(term, ()))
        most = max(shared.values(), default=0)
        return [self._messages[place] for place in sorted(shared) if shared[place] == most]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """For each term, the indexes of the user's messages that contain it."""
        places: dict[str, list[int]] = {}
        for place, message in enumerate(self._messages):
            for term in _significant_terms(message.content) if self._excerpt.is_users(message) else ():
                places.setdefault(term, []).append(place)
        return places


def _significant_terms(text: str) -> frozenset[str]:
    return frozenset(terms(text[:_LONGEST])) - LIGHT


def _candidate(draft: Draft, evidence: list[Message]) -> Candidate:
    return Candidate(
        draft.content_type,
        draft.text,
        tuple(message.message_id for message in evidence),
        draft.confidence,
        draft.valid_from,
        draft.valid_to,
        draft.slot,
        _data_of(draft, evidence[0]),
    )


def _data_of(draft: Draft, source: Message) -> dict[str, Any]:
    """For an event: its date, and the date of the message that mentions it."""
    if draft.content_type != "event":
        return {}
    dated = {} if draft.valid_from is None else {"date": draft.valid_from}
    return {**dated, "said_on": source.created_at.date().isoformat()}


def decide(
    choices: Sequence[Choice], candidates: Sequence[Candidate], known_ids: Sequence[str]
) -> Iterator[Decision]:
    """The decisions on existing candidates and entries.

    A `supersede` without an existing target becomes `add`, and so does a `none` whose targets do not exist.
    """
    for choice in choices:
        if choice.candidate >= len(candidates):
            continue
        targets = tuple(known_ids[place] for place in choice.targets if place < len(known_ids))
        is_unfounded = not targets and (choice.action == "supersede" or bool(choice.targets))
        if is_unfounded or choice.action == "add":
            yield Decision(choice.candidate, "add")
        else:
            yield Decision(choice.candidate, choice.action, targets)
