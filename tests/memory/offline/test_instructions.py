"""Standing instructions: how the user wants the assistant to behave from now on."""

import pytest

from recollect.memory.facts.instructions import is_instruction

from .kit import candidates, texts

STANDING = {
    "Please always give me type hints.": "The user wants the assistant to always give them type hints.",
    "no, shorter": "The user wants shorter answers.",
    "don't explain the code unless I ask": (
        "The user wants the assistant not to explain the code unless they ask."
    ),
    "Never use semicolons in my TypeScript": (
        "The user wants the assistant to never use semicolons in their TypeScript."
    ),
    "From now on answer in German please": "The user wants the assistant to answer in German.",
    "please keep answers to max 5 lines": "The user wants the assistant to keep answers to max 5 lines.",
    "no lentils please": "The user wants no lentils.",
    "Please call me Tom": "The user wants to be called Tom.",
    "a vegetarian meal please, as always": "The user always wants a vegetarian meal.",
    "以后代码注释都用中文": "用户希望助手以后代码注释都用中文。",
}
ONCE = [
    "Write me a function that parses dates.",
    "Explain step by step how to organize the program, without writing any code yet.",
    "Book me a train to Munich.",
    "please don't block my card",
    "never heard of it",
    "Use this file, please.",
    "Could you always do that?",
    "帮我写一封邮件",
]


@pytest.mark.parametrize(("said", "told"), STANDING.items())
def test_a_standing_instruction_is_told_and_marked(said: str, told: str) -> None:
    (found,) = candidates(said)
    assert (found.content_type, found.text, found.data) == ("instruction", told, {})


@pytest.mark.parametrize("told", STANDING.values())
def test_an_entry_about_an_instruction_is_recognized(told: str) -> None:
    assert is_instruction(told)


@pytest.mark.parametrize(
    "told", ["The user wants to learn to sail.", "The user lives in Ghent.", "用户想学画画。"]
)
def test_a_wish_of_another_kind_is_no_instruction(told: str) -> None:
    assert not is_instruction(told)


@pytest.mark.parametrize("said", ONCE)
def test_what_is_asked_for_once_is_no_standing_instruction(said: str) -> None:
    assert texts(said) == []
