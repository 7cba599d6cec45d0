"""The labelled conversations, and how the benchmark matches entries with their facts."""

import asyncio

import pytest

from benchmarks.learning.labels import Fact, Labelled, half_of, load
from benchmarks.learning.matching import faults_of, is_about, is_junk, says
from benchmarks.learning.suite import measure
from benchmarks.quality.everything import KeepsEverything
from recollect.memory.offline import OfflineExtractor

LABELLED = load()
LISBON = Fact(
    "f1", frozenset({"profile"}), "The user lives in Lisbon.", (("lisbon",),), frozenset({"m1"}), denied=False
)
TEA = Fact("f2", frozenset({"mind"}), "The user hates tea.", (("tea",),), frozenset({"m2"}), denied=True)


@pytest.mark.parametrize("labelled", LABELLED, ids=lambda labelled: labelled.name)
def test_the_labels_are_sound(labelled: Labelled) -> None:
    ids = [message.message_id for session in labelled.sessions for message in session]
    said = {message.message_id: message for session in labelled.sessions for message in session}
    facts = [fact.fact_id for fact in labelled.facts]
    assert len(ids) == len(set(ids))
    assert 5 <= labelled.messages <= 60
    for fact in labelled.facts:
        assert says(fact.text, fact), "its own text matches"
        assert all(said[each].is_from(labelled.user) for each in fact.said_in)
        assert fact.ends is None or facts.index(fact.ends) < facts.index(fact.fact_id)
    for message, sentences in labelled.not_kept.items():
        assert all(sentence.rstrip(".") in said[message].content for sentence in sentences)


def test_there_are_enough_and_both_halves_are_large() -> None:
    halves = [labelled.half for labelled in LABELLED]
    assert len(LABELLED) >= 60
    assert min(map(halves.count, ("tune", "report"))) >= 25
    assert half_of("a") == half_of("a")


def test_an_entry_is_about_a_fact_by_its_words_its_source_and_what_it_denies() -> None:
    assert is_about("The user lives in Lisbon.", ["m1"], LISBON)
    assert not is_about("The user lives in Lisbon.", ["m2"], LISBON)
    assert not is_about("The user lives in Porto.", ["m1"], LISBON)
    assert not is_about("The user does not live in Lisbon.", ["m1"], LISBON)
    assert is_about("The user lives in Lisbon, but never swims.", ["m1"], LISBON)
    assert is_about("The user can't stand tea.", ["m2"], TEA)
    assert not is_about("The user loves tea.", ["m2"], TEA)


def test_what_comes_from_a_message_without_facts_or_a_sentence_that_nobody_keeps_is_junk() -> None:
    facts, not_kept = [LISBON, TEA], {"m1": ["I need it today"]}
    assert is_junk("The user is bored.", ["m3"], facts, not_kept)
    assert is_junk("The user needs it today.", ["m1"], facts, not_kept)
    assert not is_junk("The user lives in Lisbon.", ["m1"], facts, not_kept)
    assert not is_junk("The user has a boat.", ["m1"], facts, not_kept)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The user am here.", "grammar"),
        ("The user fell on 3 May, 3 May 2026.", "the same date twice"),
        ("It was tough.", "no subject"),
        ("The user likes my boat.", "first person"),
        ("The user eats no nuts haha.", "small talk"),
        ('The user said: "ok."', "quotes the user"),
        ("The user has a boat", "no sentence"),
    ],
)
def test_a_fault_of_how_an_entry_reads_is_found(text: str, fault: str) -> None:
    assert fault in faults_of(text)
    assert faults_of("The user lives in Lisbon.") == []


def test_the_figures_tell_good_learning_from_bad() -> None:
    several = [each for each in LABELLED if each.half == "tune"][:12]
    good = asyncio.run(measure(OfflineExtractor(), several)).sample()
    bad = asyncio.run(measure(KeepsEverything(), several)).sample()
    assert good["precision"] > bad["precision"]
    assert good["junk per 100 messages"] < bad["junk per 100 messages"]
    assert good["readability faults"] < bad["readability faults"]
    assert bad["recall"] > 0
