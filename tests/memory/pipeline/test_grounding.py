"""A candidate with a quote is kept only if the user said it; what is dropped is counted by its reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.entry import Entry
from recollect.memory.pipeline.grounding import REASONS, ground, is_code
from recollect.memory.pipeline.stages import Candidate, Excerpt
from recollect.memory.times import now

from ..extraction.kit import excerpt

SAID = excerpt(
    ("user", "Hi! I live in Lisbon and work as a nurse at Santa Maria."),
    ("assistant", "You like fado, and your order is 48213."),
    ("user", "My sister Ines plays the cello. I’m allergic to peanuts."),
    ("user", "from flask import Flask, request, jsonify"),
    ("user", "Can you suggest a dinner? Thanks!"),
    ("user", "我女儿下个月五岁了，她对牛奶过敏。"),
    ("user", "I moved with a big van from Rome to Oslo in May."),
)


def dropped(text: str, quote: str, *evidence: str, said: Excerpt = SAID) -> dict[str, int]:
    found = ground([Candidate("profile", text, evidence or ("id-1",), quote=quote)], said)
    assert len(found.candidates) + sum(found.dropped.values()) == 1
    assert found.dropped.keys() <= REASONS.keys()
    return dict(found.dropped)


@pytest.mark.parametrize(
    ("text", "quote", "evidence"),
    [
        ("The user lives in Lisbon.", "I live in Lisbon", ("id-1",)),
        ("The user lives in Lisbon.", '"i  LIVE in lisbon."', ("id-1",)),
        ("The user lives in Lisbon.", "I live in Lisbon", ("id-3",)),
        ("The user lives in Lisbon.", "I live in Lisbon", ()),
        ("The user is allergic to peanuts.", "I'm allergic to peanuts", ("id-3",)),
        ("The user has a sister named Ines.", "My sister … cello", ("id-3",)),
        ("The user speaks Portuguese in Lisbon.", "I live in Lisbon", ("id-1",)),
        ("用户的女儿对牛奶过敏。", "她对牛奶过敏", ("id-6",)),
        ("The user moved with a big van from Rome to Oslo in May.", "moved with a big van", ("id-7",)),
    ],
)
def test_what_the_user_said_is_kept(text: str, quote: str, evidence: tuple[str, ...]) -> None:
    known = (Entry("e", "m", "profile", "The user is from Portugal.", now()),)
    said = Excerpt("agent", "user", SAID.messages, (), known)
    found = ground([Candidate("profile", text, evidence, quote=quote)], said)
    assert [each.text for each in found.candidates] == [text]
    assert found.candidates[0].evidence[0] in ("id-1", "id-3", "id-6", "id-7")
    assert found.dropped == {}


def test_the_evidence_is_the_message_with_the_words_whatever_is_cited() -> None:
    wrong = Candidate("profile", "The user lives in Lisbon.", ("id-3", "id-9"), quote="I live in Lisbon")
    right = Candidate("profile", "The user lives in Lisbon.", ("id-2", "id-1"), quote="I live in Lisbon")
    found = ground([wrong, right], SAID)
    assert [each.evidence for each in found.candidates] == [("id-1",), ("id-1", "id-2")]


@pytest.mark.parametrize(
    ("reason", "text", "quote"),
    [
        ("quote_not_found", "The user lives in Lisbon.", "I reside in Lisbon"),
        ("quote_not_found", "The user lives in Lisbon.", "Lisbon I live in"),
        ("quote_not_found", "The user lives in Lisbon.", "I"),
        ("quote_not_found", "The user lives in Lisbon.", "..."),
        ("quote_not_found", "The user lives in Lisbon.", "The user lives in Lisbon."),
        ("not_said_by_the_user", "The user likes fado.", "You like fado"),
        ("about_assistant", "The assistant can help in Lisbon.", "I live in Lisbon"),
        ("question", "Does the user live in Lisbon?", "I live in Lisbon"),
        ("question", "The user wants a dinner.", "Can you suggest a dinner"),
        ("too_long", "The user lives in Lisbon. " + "It is a city by the sea. " * 20, "I live in Lisbon"),
        ("too_long", "The user lives in Lisbon. It is big. It is old. It is nice.", "I live in Lisbon"),
        ("code", "from flask import Flask, request, jsonify", "from flask import Flask"),
        ("copied", "I live in Lisbon.", "I live in Lisbon"),
        ("copied", "Hi! I live in Lisbon and work as a nurse at Santa Maria.", "I live in Lisbon"),
        ("copied", "我女儿下个月五岁了，她对牛奶过敏。", "她对牛奶过敏"),
        ("copied", "The user said that I live in Lisbon and work as a nurse.", "I live in Lisbon"),
        ("copied", "用户我女儿下个月五岁了。", "我女儿下个月五岁了"),
        ("other_language", "The user's daughter is allergic to milk.", "她对牛奶过敏"),
        ("other_language", "用户住在里斯本。", "I live in Lisbon"),
        ("unlike_quote", "The user is a doctor.", "I live in Lisbon"),
        ("unlike_quote", "L'utilisateur habite au Portugal.", "I live in Lisbon"),
        ("name_not_said", "The user lives in Paris with a nurse.", "I live in Lisbon"),
        ("name_not_said", "The user lives in Lisbon at number 77123.", "I live in Lisbon"),
    ],
)
def test_what_the_user_did_not_say_is_dropped(reason: str, text: str, quote: str) -> None:
    assert dropped(text, quote) == {reason: 1}


def test_every_reason_is_described() -> None:
    assert all(REASONS.values())


def test_without_a_quote_only_what_others_said_is_dropped() -> None:
    def kept(*evidence: str) -> bool:
        return bool(ground([Candidate("event", "I swim?", evidence)], SAID).candidates)

    assert kept("id-1")
    assert kept("id-2", "id-1")
    assert kept("elsewhere")
    assert kept()
    assert not kept("id-2")


@pytest.mark.parametrize(
    "text",
    [
        "def users() -> Response:",
        "const users = load();",
        "```python",
        "SELECT name FROM users WHERE id = 1",
        "app.get('/users')",
        "if (x === 1) {",
        "<div class='a'>",
    ],
)
def test_code_is_known_by_its_marks(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "The user wants type hints, because their CI runs mypy --strict.",
        "The user uses Node.js and C++ (version 20) at work.",
        "The user's class starts at 9: a pottery class.",
        "The user lives in Lisbon; their sister lives in Porto.",
        "The user moved from Lisbon to Porto.",
        "用户住在上海（浦东）。",
    ],
)
def test_a_sentence_about_code_is_no_code(text: str) -> None:
    assert not is_code(text)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["id-1", "id-2", "x"])))
)
def test_whatever_a_model_claims_only_quoted_words_of_the_user_are_kept(claims: list[Any]) -> None:
    given_ones = [Candidate("mind", text, (source,), quote=quote) for text, quote, source in claims]
    found = ground(given_ones, SAID)
    assert len(found.candidates) + sum(found.dropped.values()) == len(claims)
    users = {message.message_id for message in SAID.messages if SAID.is_users(message)}
    for each in found.candidates:
        assert not each.quote or each.evidence[0] in users


def test_a_whole_message_is_no_statement_about_the_user() -> None:
    assert dropped("Good idea!", "good idea", said=excerpt(("user", "good idea"))) == {"copied": 1}


def test_a_small_model_writes_of_the_user_only() -> None:
    said = excerpt(("user", "Amos is my boss, I fly to Crete"))
    assert dropped("Amos flies to Crete.", "I fly to Crete", said=said) == {"about_others": 1}
    assert dropped("The user's boss is Amos.", "Amos is my boss", said=said) == {}


def test_a_small_model_makes_up_no_gender() -> None:
    said, text = "I'm 43 and take metoprolol", "The user is a 43-year-old male."
    assert dropped(text, "I'm 43", said=excerpt(("user", said))) == {"name_not_said": 1}
    assert dropped(text, "I'm 43", said=excerpt(("user", f"{said}, as a male nurse"))) == {}


def trusted(said: str, quote: str, text: str, kind: Any = "profile") -> dict[str, int]:
    candidate = Candidate(kind, text, ("id-1",), quote=quote, is_trusted=True)
    return dict(ground([candidate], excerpt(("user", said))).dropped)


@pytest.mark.parametrize(
    ("said", "quote", "text"),
    [
        ("Ich bin Krankenpflegerin", "Ich bin Krankenpflegerin", "Die Nutzerin ist Krankenschwester."),
        ("ich zahle zwölftausend Euro", "zwölftausend Euro", "Der Nutzer zahlt 12.000 Euro."),
        ("I'm 1.82m tall", "I'm 1.82m", "The user is 182 cm tall."),
        ("I'm 1m82", "I'm 1m82", "The user is 182 cm tall."),
        ("it cost us 1.2 million", "1.2 million", "The flat cost 1,200,000."),
        ("we paid half a million", "half a million", "The flat cost 500,000."),
        ("I keep a hundred and fifty sheep", "a hundred and fifty", "The user keeps 150 sheep."),
        ("一百五十万的房贷", "一百五十万的房贷", "用户有1500000元房贷。"),
        ("六月去云南", "六月去云南", "用户计划2026年6月去云南。"),
        ("i live in ny", "i live in ny", "The user lives in New York."),
        ("I'm from münchen, not poland", "not poland", "The user is from Munich and not Polish."),
        ("**I** live in _Oslo_ now!!", "I live in Oslo now", "The user lives in Oslo."),
        ("yes", "yes", "The user is vegetarian."),
        ("Well, two.", "two", "The user has two children."),
        ("是的", "是的", "用户吃素。"),
        ("call asyncio.run() once", "asyncio.run() once", "The user wants asyncio.run() called once."),
        ("x" * 30_000 + " I live in Oslo.", "I live in Oslo", "The user lives in Oslo."),
    ],
)
def test_a_large_model_may_say_it_in_its_way(said: str, quote: str, text: str) -> None:
    assert trusted(said, quote, text) == {}


@pytest.mark.parametrize(
    ("said", "quote", "text", "reason"),
    [
        ("I live in Oslo", "I live in Oslo", "The user lives in Rome.", "name_not_said"),
        ("I have 2 boats", "I have 2 boats", "The user has 7500 boats.", "name_not_said"),
        ("花了一万二", "花了一万二", "用户花了35000元。", "name_not_said"),
        ("Twofold, I say", "two", "The user has two children.", "quote_not_found"),
        ("I live in Oslo", "I like Oslo", "The user likes Oslo.", "quote_not_found"),
        ("run it", "...", "The user runs.", "quote_not_found"),
        ("print(f(x))", "print(f(x))", "print(f(x))", "code"),
    ],
)
def test_a_large_model_may_not_invent(said: str, quote: str, text: str, reason: str) -> None:
    assert trusted(said, quote, text) == {reason: 1}


def test_the_same_words_support_ten_candidates() -> None:
    many = [
        Candidate("profile", f"The user lives in Oslo {n}.", ("id-1",), quote="in Oslo", is_trusted=True)
        for n in range(30)
    ]
    found = ground(many, excerpt(("user", "I live in Oslo")))
    assert (len(found.candidates), found.dropped) == (10, {"too_many": 20})


def test_a_wish_may_name_the_assistant() -> None:
    said, text = "always answer in German", "The assistant should answer in German."
    assert trusted(said, said, text, "instruction") == {}
    assert trusted(said, said, text) == {"about_assistant": 1}
