"""What is said and what is known: sentences that differ, made from a seed."""

import random
from collections.abc import Iterator

_STARTS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "v",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "oo")
_ENDS = ("ck", "ld", "m", "n", "nd", "r", "rk", "s", "st", "t")
_WORDS = 4000
FORMS = (
    "I bought a {} {} from the {} in {}",
    "I went to the {} {} with {} and saw the {}",
    "I kept a {} {} beside the {} for {}",
    "I preferred {} {} to {} when there was {}",
    "I repaired the {} {} of {} with a {}",
)
_SMALL_TALK = (
    " It took longer than I thought, and on the way back I met the neighbours, who asked about the garden"
    " and told me that the bridge is closed again until the end of the month."
)
_ANSWER = (
    "That sounds like a day with a lot in it. If it helps, I can look up when the bridge opens again, write"
    " the list for the weekend, or remind you of it tomorrow morning. Which of these would you like first?"
)
PAIRS = 5  # of what the user says and an answer, in a conversation


def _word(chance: random.Random) -> str:
    syllables = chance.choice((1, 2, 2, 3))
    parts = (chance.choice(_STARTS) + chance.choice(_VOWELS) for _ in range(syllables))
    return "".join(parts) + chance.choice(_ENDS)


def sentences(seed: int) -> Iterator[str]:
    """What a user has to tell, without end and from some thousands of words."""
    words = [_word(random.Random(number)) for number in range(_WORDS)]  # the same for all seeds
    chance = random.Random(f"sentences {seed}")
    while True:
        yield chance.choice(FORMS).format(*chance.choices(words, k=4))


def conversation(facts: list[str]) -> list[dict[str, str]]:
    """Messages of about 200 characters: for each fact one of the user that begins with it, and an answer."""
    return [
        message
        for fact in facts
        for message in (
            {"role": "user", "content": f"{fact}.{_SMALL_TALK}"},
            {"role": "assistant", "content": _ANSWER},
        )
    ]


def told(content: str) -> str:
    """The fact at the beginning of a message, as an entry tells it."""
    return content.partition(".")[0].replace("I", "The user", 1)
