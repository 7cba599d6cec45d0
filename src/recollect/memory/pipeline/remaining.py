"""The facts of an entry that remain when another takes its place: only what that replaces may go."""

from ..database.entries import telling_terms
from ..facts.stances import contradict, stance_of
from ..facts.stated import facts_of, slot_in
from ..texts.similarity import mean_the_same, meaning_of, says_more


def remaining_facts(text: str, successor: str) -> list[str]:
    """The facts of a text that its successor does not replace; none where it states one fact."""
    facts = facts_of(text)
    if len(facts) == 1:
        return []
    replaced = [fact for fact in facts if replaces(successor, fact)] or [_nearest(facts, successor)]
    return [fact for fact in facts if fact not in replaced]


def replaces(text: str, fact: str) -> bool:
    """Whether a text states the same as a fact, another value of it, or its contrary."""
    if any(_is_about_the_same(stated, fact) for stated in facts_of(text)):
        return True
    meaning, of_fact = meaning_of(text), meaning_of(fact)
    is_said = mean_the_same(meaning, of_fact) or says_more(meaning, of_fact)
    return is_said or contradict(stance_of(text), stance_of(fact))


def _is_about_the_same(one: str, other: str) -> bool:
    slot, known = slot_in(one), slot_in(other)
    return slot is not None and known is not None and slot.name == known.name


def _nearest(facts: list[str], text: str) -> str:
    """The fact that shares most words with a text; the first where none shares any."""
    words = set(telling_terms(text))
    return max(facts, key=lambda fact: len(words & set(telling_terms(fact))))
