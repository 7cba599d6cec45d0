"""Decides which candidates of an extractor may become entries: the same checks for every extractor."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..database.entries import distinctive_terms
from ..pipeline.stages import Candidate, Excerpt
from .secrets import mask_secrets, mask_value
from .steering import find_steering

NOT_OF_USER = "not said by the user"
ONLY_A_SECRET = "only a secret"
STEERING = "steers the agent"
REJECTED = "rejected before"

# Words that name a secret. A text with no others says nothing once its secret is masked.
_WORDS_OF_SECRETS = frozenset(
    distinctive_terms(
        "password passcode pin code card bank account number key token secret login ending ends last four"
        " digits credit debit id api one-time security 密码 卡号 尾号 银行卡"
    )
)
_LABEL = re.compile(r"\[masked [^\]\n]{1,60}\]")


@dataclass(frozen=True)
class Checked:
    """The candidates that may become entries, with their secrets masked, and counts of what was done."""

    candidates: tuple[Candidate, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many candidates were dropped, by the reason."""
    masked: Mapping[str, int] = field(default_factory=dict)
    """How many secrets were masked, by their kind."""


def check_candidates(
    candidates: Iterable[Candidate],
    excerpt: Excerpt,
    is_rejected: Callable[[Candidate], bool] | None = None,
) -> Checked:
    """Drop the candidates that must not become entries, and mask the secrets of the others.

    This holds for every extractor. A fact about the user needs a message in which the user says it: what
    only the assistant, a tool or another participant said is none.
    """
    of_user = {each.message_id for each in (*excerpt.before, *excerpt.messages) if excerpt.is_users(each)}
    dropped: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    kept: list[Candidate] = []
    for candidate in candidates:
        hidden = mask_secrets(candidate.text)
        quote = mask_secrets(candidate.quote).text
        shown = replace(candidate, text=hidden.text, quote=quote, data=mask_value(candidate.data))
        reason = check_entry(candidate, hidden.text, bool(hidden.found), of_user)
        if reason is None and is_rejected is not None and is_rejected(shown):
            reason = REJECTED
        if reason is not None:
            dropped[reason] += 1
            continue
        masked.update(hidden.found)
        kept.append(shown)
    return Checked(tuple(kept), dict(dropped), dict(masked))


def check_entry(candidate: Candidate, text: str, is_masked: bool, of_user: Collection[str]) -> str | None:
    """Why a candidate must not become an entry; `None` if it may. `text` is its text with secrets masked."""
    # An inference rests on entries, which rest on what the user said.
    if not candidate.rests_on and not any(message in of_user for message in candidate.evidence):
        return NOT_OF_USER
    if find_steering(candidate.text):
        return STEERING
    if is_masked and set(distinctive_terms(_LABEL.sub(" ", text))) <= _WORDS_OF_SECRETS:
        return ONLY_A_SECRET
    return None
