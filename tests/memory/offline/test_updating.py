"""Decisions about candidates: added, superseding known entries, or dropped."""

import asyncio
from dataclasses import replace

import pytest

from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Excerpt

from .kit import candidates, decisions, entry, excerpt_of, mind

BOAT = "The user has a boat."


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("I live in Ghent.", "The user lives in Ghent."),
        ("I live in Ghent.", "The user moved to Ghent."),
        ("I have 2 cats.", "The user has two cats."),
        ("I really have two cats!", "The user has two cats."),
        ("I play the cello in an orchestra.", "The user plays the cello in an orchestra in town."),
        ("我对花生过敏。", "用户对花生过敏。"),
        ("我住在成都。", "用户居住在成都。"),
    ],
)
def test_what_is_known_already_adds_nothing_and_names_who_says_so(said: str, known: str) -> None:
    (decision,) = decisions(said, entry("The user owns a boat.", "other"), entry(known))
    assert (decision.action, decision.targets) == ("none", ("known",))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("I live in Ghent.", "The user lives in Lima."),
        ("I moved to Ghent last month.", "The user lives in Lima."),
        ("I work as a florist.", "The user works as a baker."),
        ("I'm a nurse.", "The user works as a baker."),
        ("I work at Fabrikam.", "The user works for Contoso."),
        ("I'm 42 years old.", "The user is 41 years old."),
        ("I just got divorced.", "The user is married."),
        ("My email is ivo@example.org.", "The user's email is ivo@example.com."),
        ("My phone number is +32 2 555 0101.", "The user's phone number is +32 2 555 0100."),
        ("My favorite color is green.", "The user's favorite color is blue."),
        ("I no longer work at Contoso.", "The user works at Contoso."),
        ("I don't eat fish any more.", "The user eats fish."),
        ("I don't eat fish.", "The user eats fish."),
        ("Actually my name is Ivan.", "The user's name is Ivo."),
        ("It turns out I'm not allergic to latex.", "The user is allergic to latex."),
        ("I am allergic to latex after all.", "The user is not allergic to latex."),
        ("I stopped eating fish.", "The user eats fish."),
        ("I quit my job at Contoso last week.", "The user works at Contoso."),
        ("I just retired.", "The user works as a baker."),
        ("我对海鲜不过敏。", "用户对海鲜过敏。"),
        ("我从利马大学辞职了。", "用户在利马大学上班。"),
        ("我住在成都。", "用户住在利马。"),
        ("我搬到了成都。", "用户住在利马。"),
        ("我不住在利马了。", "用户住在利马。"),
        ("我在成都大学工作。", "用户在利马大学工作。"),
        ("我今年42岁。", "用户今年41岁。"),
    ],
)
def test_what_is_no_longer_so_is_superseded(said: str, known: str) -> None:
    (decision,) = decisions(said, entry("The user owns a boat.", "other"), entry(known))
    assert (decision.action, decision.targets) == ("supersede", ("known",))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("I have a dog.", "The user has a cat."),
        ("My favorite food is rice.", "The user's favorite color is blue."),
        ("My sister lives in Lima.", "The user lives in Ghent."),
        ("I broke my arm yesterday.", "The user broke their arm on 3 March 2020."),
        ("I joined a gym.", "The user works at Contoso."),
        ("I quit my job at Fabrikam.", "The user works at Contoso."),
        ("I don't eat fish.", "The user eats fish and rice with beans on Sundays."),
        ("I don't eat fish.", "The user doesn't eat meat."),
        ("我妹妹住在利马。", "用户住在成都。"),
        ("我妈妈退休了。", "用户在利马大学上班。"),
    ],
)
def test_what_is_about_something_else_is_added(said: str, known: str) -> None:
    assert [decision.action for decision in decisions(said, entry(known))] == ["add"]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("I don't like jazz any more.", "The user loves jazz."),
        ("I hate jazz now.", "The user likes jazz."),
        ("I like jazz now.", "The user can't stand jazz."),
        ("我不喜欢爵士乐了。", "用户喜欢爵士乐。"),
        ("我现在讨厌爵士乐。", "用户喜欢爵士乐。"),
    ],
)
def test_a_liking_that_is_over_is_superseded_by_a_liking(said: str, known: str) -> None:
    (decision,) = decisions(said, entry(known, content_type="mind"))
    assert (decision.action, decision.targets) == ("supersede", ("known",))
    assert mind(said).candidates == ()  # it is given once, where it can take a place


def test_what_is_of_another_type_is_not_superseded() -> None:
    known = entry("The user is allergic to latex.", content_type="mind")
    assert [decision.action for decision in decisions("I'm not allergic to latex.", known)] == ["add"]


def test_of_two_contradicting_feelings_in_one_conversation_the_latter_holds() -> None:
    found = candidates("I like jazz.", "I don't like jazz.")
    assert [candidate.text for candidate in found] == ["The user doesn't like jazz."]
    found = candidates("I don't like jazz.", "I like jazz.")
    assert [candidate.text for candidate in found] == ["The user likes jazz."]


def test_what_is_taken_back_in_the_same_conversation_is_not_added() -> None:
    decided = decisions("I own a boat. I'm kidding, I don't own a boat.")
    assert [decision.action for decision in decided] == ["none", "add"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I live in Lima. Wait, I meant Ghent.", ["The user lives in Ghent."]),
        (
            "I live in Lima. No wait, it's Ghent. I have a boat.",
            ["The user has a boat.", "The user lives in Ghent."],
        ),
        ("I live in Lima, I mean Ghent.", ["The user lives in Ghent."]),
        ("我住在利马。不对，是成都。", ["用户住在成都。"]),
    ],
)
def test_a_correction_in_the_same_message_wins(said: str, told: list[str]) -> None:
    assert [candidate.text for candidate in candidates(said)] == told


@pytest.mark.parametrize(
    "said", ["I live in Lima. Actually no, I live in Ghent.", "我住在利马。不对，我住在成都。"]
)
def test_a_fact_that_is_said_again_otherwise_in_the_same_message_wins(said: str) -> None:
    assert [decision.action for decision in decisions(said)] == ["none", "add"]


def test_what_a_correction_stands_beside_is_read() -> None:
    found = candidates("I'm 41 years old.", "Sorry, I meant 42. I live in Ghent.")
    assert [candidate.text for candidate in found][1:] == [
        "The user lives in Ghent.",
        "The user is 42 years old.",
    ]


def test_the_latter_of_two_values_in_one_conversation_holds() -> None:
    extractor, excerpt = OfflineExtractor(), excerpt_of("I live in Lima.", "I live in Ghent.")
    found = asyncio.run(extractor.modification(excerpt)).value.candidates
    decided = asyncio.run(extractor.update(excerpt, found, [])).value.decisions
    assert [decision.action for decision in decided] == ["none", "add"]


@pytest.mark.parametrize(
    ("said", "correction", "told"),
    [
        ("I live in Lima.", "Actually, it's Ghent.", "The user lives in Ghent."),
        ("I'm 41 years old.", "Sorry, I meant 42.", "The user is 42 years old."),
        ("My name is Ivo.", "No, it's Ivan.", "The user's name is Ivan."),
        ("我住在利马。", "不对，是成都。", "用户住在成都。"),
    ],
)
def test_a_correction_cites_both_messages(said: str, correction: str, told: str) -> None:
    found = candidates(said, correction)[-1]
    assert (found.text, found.evidence) == (told, ("m1", "m0"))


def test_what_was_said_before_the_excerpt_can_be_corrected_and_is_not_cited() -> None:
    said = excerpt_of("I live in Lima.", "Actually, it's Ghent.").messages
    excerpt = Excerpt("agent", "user", said[1:], before=said[:1])
    (found,) = asyncio.run(OfflineExtractor().modification(excerpt)).value.candidates
    assert (found.text, found.evidence) == ("The user lives in Ghent.", ("m1",))


def test_a_correction_of_nothing_is_nothing() -> None:
    assert candidates("Actually, it's Ghent.") == []


def test_what_is_retired_is_not_known() -> None:
    retired = replace(entry("The user lives in Ghent."), retired_at=entry("x").learned_at)
    assert [decision.action for decision in decisions("I live in Ghent.", retired)] == ["add"]


def test_the_mind_leaves_out_what_is_known() -> None:
    known = [entry("The user enjoys tea.", content_type="mind")]
    assert not mind("I like tea.", known=known).candidates
    assert len(mind("I like coffee.", known=known).candidates) == 1
