"""What holds for a project: the examples and near misses of each rule, and where it counts."""

import pytest

from recollect.memory.conversation import read_messages
from recollect.memory.offline import OfflineExtractor
from recollect.memory.offline.rules import load
from recollect.memory.offline.work import read_work
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

RULES = load("work")["rules"]
EXAMPLES = [(rule["type"], *example) for rule in RULES for example in rule["examples"]]
MISSES = [miss for rule in RULES for miss in rule["misses"]]


async def learned(agent: str, text: str) -> list[str]:
    messages = read_messages([{"role": "user", "content": text}], now())
    answer = await OfflineExtractor().modification(Excerpt(agent, "ada", messages))
    return [candidate.text for candidate in answer.value.candidates]


@pytest.mark.parametrize(("kind", "sentence", "text"), EXAMPLES)
def test_sentence_about_the_project_becomes_an_entry(kind: str, sentence: str, text: str) -> None:
    assert read_work(sentence) == (kind, text)


@pytest.mark.parametrize("sentence", MISSES)
def test_near_miss_teaches_nothing(sentence: str) -> None:
    assert read_work(sentence) is None


@in_event_loop
async def test_only_the_memory_of_a_project_learns_them() -> None:
    assert await learned("code:/work/shop", "We use ruff for linting.") == [
        "In this project we use ruff for linting."
    ]
    assert await learned("assistant", "We use ruff for linting.") == []


@in_event_loop
@pytest.mark.parametrize(
    "text",
    [
        "```\nNever push to main.\n```",
        "> Never push to main.",
        'The README says "Never push to main."',
        "README:\n| Never push to main. |",
    ],
)
async def test_pasted_and_quoted_text_teaches_nothing(text: str) -> None:
    assert await learned("code:/work/shop", text) == []


@in_event_loop
async def test_what_another_rule_learned_is_not_added_again() -> None:
    found = await learned("code:/work/shop", "Always use type hints.")
    assert found == ["The user wants the assistant to always use type hints."]
