"""What the wording of a question says about its answer."""

import pytest

from recollect.memory.search.phrasing import (
    asked_part,
    asks_about_person,
    asks_advice,
    asks_several,
    meant_role,
    without_frame,
)
from recollect.memory.search.query import LONGEST, understand


@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Where did I grow up?", "user"),
        ("What is our address?", "user"),
        ("我住在哪里？", "user"),
        ("What did you recommend?", "assistant"),
        ("Which film have you suggested to me?", "assistant"),
        ("What was in your second answer?", "assistant"),
        ("你上次推荐了什么？", "assistant"),
        ("Can you tell me where the office is?", None),
        ("Could you give me the address of the bakery?", None),
        ("Summarize what I said about tea.", None),
        ("总结一下我说的话", None),
        ("Which museum did Ada see?", None),
    ],
)
def test_who_is_meant(question: str, role: str | None) -> None:
    assert meant_role(question) == role


@pytest.mark.parametrize(
    ("question", "is_advice"),
    [
        ("Can you recommend a film?", True),
        ("What should I cook tonight?", True),
        ("How can I sleep better?", True),
        ("推荐一本书", True),
        ("Which film did you recommend?", False),
        ("Summarize the tips.", False),
        ("List in order the ideas that I mentioned.", False),
        ("Where do I live?", False),
    ],
)
def test_advice_is_what_is_still_to_be_given(question: str, is_advice: bool) -> None:
    assert asks_advice(question) is is_advice
    assert understand(question).asks_advice is is_advice


@pytest.mark.parametrize(
    ("question", "is_several"),
    [
        ("How many trams are there?", True),
        ("Summarize the trip.", True),
        ("Which cities has she seen?", True),
        ("列出所有城市", True),
        ("Which city did she see?", False),
        ("Where does she live?", False),
    ],
)
def test_an_answer_may_be_spread_over_several_messages(question: str, is_several: bool) -> None:
    assert asks_several(question) is is_several


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Can you remind me what I said about green tea?", "what green tea?"),
        ("Could you please tell me about the order in which I brought up the cats?", "the cats?"),
        ("Which teas did we discuss throughout our conversations?", "Which teas ?"),
        ("Where is the office?", "Where is the office?"),
        ("remind me", "remind me"),
    ],
)
def test_the_words_around_a_question_are_no_part_of_it(question: str, left: str) -> None:
    assert without_frame(question) == left


def test_a_framed_question_searches_for_its_subject_alone() -> None:
    query = understand("Can you remind me what I said about tea?")
    assert query.terms == ("tea",)
    assert query.role == "user"


FILLER = "The migration went through several stages. " * 70
QUESTION = "Which tram goes to Belem?"


@pytest.mark.parametrize("text", [f"{FILLER}{QUESTION}", f"{QUESTION} {FILLER}"])
def test_the_question_in_a_long_text_is_what_is_asked(text: str) -> None:
    assert len(text) > 3000
    query = understand(text)
    assert query.embedding_text == QUESTION
    assert query.terms == ("tram", "goe", "belem")
    assert "migrat" in query.further
    assert query.context == " ".join(text[-LONGEST:].split())


def test_a_long_text_without_a_question_asks_with_its_last_sentences() -> None:
    asked = asked_part(FILLER + "The tram stops. Nobody waits. It rains in Belem.")
    assert asked == "The tram stops. Nobody waits. It rains in Belem."


def test_of_a_huge_text_the_end_is_read() -> None:
    query = understand("A cello. " * 20_000 + QUESTION)
    assert len(query.text) == LONGEST
    assert query.terms[:3] == ("tram", "goe", "belem")


@pytest.mark.parametrize(
    "question", ["user login", "the assistant manager", "assisted living", "system tool"]
)
def test_a_role_is_a_word_and_no_speaker(question: str) -> None:
    query = understand(question, ("user", "assistant", "system", "tool", "Ada"))
    assert query.speakers == ()
    assert query.role is None


@pytest.mark.parametrize("character", ["x", " ", "?", "\n", ",", '"', "我", "😀", "a.", "I "])
def test_a_hundred_kilobytes_of_anything_are_a_question(character: str) -> None:
    query = understand(character * 100_000)
    assert len(query.text) == LONGEST
    assert len(query.terms) <= 64


@pytest.mark.parametrize(
    ("question", "is_about_person"),
    [
        ("Where do I live?", True),
        ("Where does she live?", True),
        ("Wie heißt mein Hund?", True),
        ("¿Dónde vivo?", True),
        ("Как зовут моего кота?", True),
        ("제 직업은 뭐예요?", True),
        ("ما اسم قطتي؟", True),
        ("他住在哪里？", True),
        ("How do I sort a list?", False),
        ("Which other cities are there?", False),
        ("其他城市有哪些？", False),
        ("Wie hoch ist der Mont Blanc?", False),
    ],
)
def test_a_question_may_be_about_a_person_who_must_be_known(question: str, is_about_person: bool) -> None:
    assert asks_about_person(question) is is_about_person
