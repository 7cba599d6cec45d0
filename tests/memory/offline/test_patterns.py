"""The data files of the patterns: each example is learned as it says, and no near miss is learned."""

from collections.abc import Iterator
from typing import Any

import pytest

from recollect.memory.offline.rules import Language, attributes, load, patterns_of
from recollect.memory.pipeline.stages import Candidate

from .kit import candidates

LANGUAGES: tuple[Language, ...] = ("en", "zh")
RELATIONS = {"partner", "parent", "person", "pet"}


def rules() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for language in LANGUAGES:
        given = load(language)
        for rule in given["rules"]:
            yield rule["attribute"], rule.get("op", "set"), rule
        yield "instruction", "set", given["instructions"]


EXAMPLES = [(said, expected) for _, _, rule in rules() for said, *expected in rule["examples"]]
MISSES = [(said, name, operation) for name, operation, rule in rules() for said in rule["misses"]]


def holding(found: list[Candidate]) -> list[str]:
    """The texts of the candidates that no later one replaces."""
    gone = {reference for each in found for reference in each.replaces}
    return [each.text for each in found if each.reference not in gone]


@pytest.mark.parametrize(("said", "expected"), EXAMPLES, ids=[said for said, _ in EXAMPLES])
def test_an_example_is_learned_as_it_says(said: str, expected: list[str]) -> None:
    assert sorted(holding(candidates(*said.split("|")))) == sorted(expected)


@pytest.mark.parametrize(("said", "name", "operation"), MISSES, ids=[said for said, *_ in MISSES])
def test_a_near_miss_is_not_learned(said: str, name: str, operation: str) -> None:
    names = RELATIONS if name in ("relation", "children") else {name}
    found = [
        each.text
        for each in candidates(*said.split("|"))
        if each.data["attribute"] in names and each.data["operation"] == operation
    ]
    assert found == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_rule_has_an_example_and_a_known_attribute(language: Language) -> None:
    for rule in load(language)["rules"]:
        assert rule["examples"], rule["patterns"]
        assert rule["attribute"] in {*attributes(), "relation", "children"}
    assert patterns_of(language).rules


def test_every_attribute_has_a_text_in_both_languages() -> None:
    for attribute in attributes().values():
        assert all(attribute.texts[language]["text"] for language in LANGUAGES)
        assert attribute.texts["en"].keys() >= attribute.texts["zh"].keys() - {"end"}
