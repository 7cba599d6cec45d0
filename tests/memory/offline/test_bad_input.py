"""Messages that nobody should send: the work is bounded, and nothing is kept that was not said."""

import pytest

from recollect.memory.pipeline.consolidation import split_facts

from .kit import candidates

MOST = 2000
"""The most entries of one message, whatever it says."""
BAD = {
    "without a space": "a" * 200_000,
    "dates": " ".join(f"on {1 + number % 28} March {1900 + number % 200}" for number in range(10_000)),
    "nested quotes": '"“' * 5000 + "I live in Rome" + '”"' * 5000,
    "quotes in quotes": 'He said "she said \'I live in Rome\'" and "I am a nurse". ' * 500,
    "right to left": "أنا أعيش في القاهرة. " * 500 + "אני גר בתל אביב. " * 500,
    "only code": "```\n" + "x = I.am(allergic);\n" * 2000 + "```",
    "code without a fence": "int i = 0; for (;;) { I++; }\n" * 2000,
    "a transcript": "\n".join(f"[10:{number % 60:02}] Bob: I live in Rome" for number in range(1000)),
    "a transcript without times": "\n".join(
        f"{'Bob' if n % 2 else 'Amy'}: I am a nurse" for n in range(1000)
    ),
    "quoted lines": "> I live in Rome\n" * 5000,
    "blank lines": "\n" * 100_000,
    "open fences": "```a" * 10_000,
    "brackets": "(" * 50_000,
    "digits": "1" * 100_000,
}


@pytest.mark.parametrize("said", BAD.values(), ids=BAD)
def test_nothing_is_learned_from_what_nobody_says_of_themselves(said: str) -> None:
    assert candidates(said) == []


def test_a_sentence_that_is_repeated_is_one_entry() -> None:
    assert len(candidates("I like tea, " * 5000)) <= 2
    assert len(candidates("I am allergic to nuts. " * 5000)) == 1


def test_mixed_languages_are_read_where_the_rules_know_them() -> None:
    found = candidates("I live in Ghent. 我对花生过敏。 أنا أعيش في القاهرة.")
    assert [each.text for each in found] == ["The user lives in Ghent.", "用户对花生过敏。"]


def test_many_facts_in_one_message_are_bounded() -> None:
    found = candidates(" ".join(f"I have a cat called Cat{number}." for number in range(5000)))
    assert 500 < len(split_facts(found)) <= MOST
