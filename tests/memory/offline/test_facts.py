"""One clause, one entry: sentences that state several facts, in English and Chinese."""

import pytest

from recollect.memory.facts.clauses import facts_of

from .kit import texts

SENTENCES = {
    "I live in Lisbon, and I am allergic to peanuts.": [
        "The user lives in Lisbon.",
        "The user is allergic to peanuts.",
    ],
    "I'm 34 and allergic to bee stings.": ["The user is 34.", "The user is allergic to bee stings."],
    "My name is Ana, I work as a nurse and I have diabetes.": [
        "The user's name is Ana.",
        "The user works as a nurse.",
        "The user has diabetes.",
    ],
    "My name's Bob and I'm allergic to latex.": [
        "The user's name is Bob.",
        "The user is allergic to latex.",
    ],
    "I live in Lisbon with my wife and two kids, and I can't eat gluten.": [
        "The user lives in Lisbon.",
        "The user lives with their wife and two kids.",
        "The user can't eat gluten.",
    ],
    "I'm Ana, 34, living in Lisbon, allergic to nuts.": [
        "The user is Ana.",
        "The user is 34.",
        "The user is living in Lisbon.",
        "The user is allergic to nuts.",
    ],
    "I am allergic to peanuts and live in Lisbon.": [
        "The user is allergic to peanuts.",
        "The user lives in Lisbon.",
    ],
    "I work at Contoso and am severely allergic to shellfish": [
        "The user works at Contoso.",
        "The user is severely allergic to shellfish.",
    ],
    "I work as a cook, have asthma, and love hiking.": [
        "The user works as a cook.",
        "The user has asthma.",
        "The user loves hiking.",
    ],
    "I'm a nurse from Leeds with a latex allergy.": [
        "The user is a nurse.",
        "The user is from Leeds.",
        "The user has a latex allergy.",
    ],
    "I'm a vegan and I live in Paris (I'm allergic to soy).": [
        "The user is a vegan.",
        "The user lives in Paris.",
        "The user is allergic to soy.",
    ],
    "My wife and I live in Lisbon and I am allergic to nuts.": [
        "The user and their wife live in Lisbon.",
        "The user is allergic to nuts.",
    ],
    "I live in Oslo, and my emergency contact is my brother Tom.": [
        "The user lives in Oslo.",
        "The user's emergency contact is their brother Tom.",
    ],
    "我住在里斯本，对花生过敏。": ["用户住在里斯本。", "用户对花生过敏。"],
    "我住在里斯本并且对花生过敏。": ["用户住在里斯本。", "用户对花生过敏。"],
    "我今年34岁，对蜜蜂过敏。": ["用户今年34岁。", "用户对蜜蜂过敏。"],
    "我叫安娜，在医院当护士，有糖尿病。": ["用户叫安娜。", "用户在医院当护士。", "用户有糖尿病。"],
    "我是护士，患有哮喘，喜欢爬山。": ["用户是护士。", "用户患有哮喘。", "用户喜欢爬山。"],
    "我今年30岁，单身，住在上海，有一只猫。": [
        "用户今年30岁。",
        "用户单身。",
        "用户住在上海。",
        "用户有一只猫。",
    ],
    "我妈妈住在成都，对海鲜过敏。": ["用户的妈妈住在成都。", "用户的妈妈对海鲜过敏。"],
}


@pytest.mark.parametrize(("said", "told"), SENTENCES.items())
def test_each_clause_of_a_sentence_is_an_entry(said: str, told: list[str]) -> None:
    found = texts(said)
    assert sorted(found) == sorted(told)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I moved to Berlin and I love it.", "The user moved to Berlin and the user loves it."),
        ("I want to live in Rome and work as a cook.", "The user wants to live in Rome and work as a cook."),
        ("I'm a teacher and a writer.", "The user is a teacher and a writer."),
        (
            "My wife and I live in Lisbon and have two kids.",
            "The user and their wife live in Lisbon and have two kids.",
        ),
        ("My parents are retired and live in Porto.", "The user's parents are retired and live in Porto."),
        ("I live in Bergen, Norway.", "The user lives in Bergen, Norway."),
        ("我对花生、海鲜过敏。", "用户对花生、海鲜过敏。"),
    ],
)
def test_a_sentence_stays_whole_where_its_parts_would_not_stand_alone(said: str, told: str) -> None:
    assert texts(said) == [told]


def test_a_clause_about_an_earlier_time_is_not_cut_off_from_it() -> None:
    assert not any(
        text.startswith("The user worked") for text in texts("When I lived in Rome, I worked as a cook.")
    )


ENTRIES = {
    "The user lives in Lisbon, and the user is allergic to peanuts.": [
        "The user lives in Lisbon.",
        "The user is allergic to peanuts.",
    ],
    "The user lives in Lisbon, and they are allergic to peanuts.": [
        "The user lives in Lisbon.",
        "The user is allergic to peanuts.",
    ],
    "The user is 34 and allergic to bee stings.": ["The user is 34.", "The user is allergic to bee stings."],
    "The user, who lives in Lisbon, is allergic to peanuts.": [
        "The user lives in Lisbon.",
        "The user is allergic to peanuts.",
    ],
    "The user is a nurse living in Lisbon who is allergic to latex.": [
        "The user is a nurse.",
        "The user is living in Lisbon.",
        "The user is allergic to latex.",
    ],
    "The user works as a nurse. The user has diabetes.": [
        "The user works as a nurse.",
        "The user has diabetes.",
    ],
    "用户住在里斯本，对花生过敏。": ["用户住在里斯本。", "用户对花生过敏。"],
    "The user prefers tea, bread and butter.": ["The user prefers tea, bread and butter."],
    "The user adopted a greyhound. She is called Nima.": [
        "The user adopted a greyhound. She is called Nima."
    ],
}


@pytest.mark.parametrize(("text", "facts"), ENTRIES.items())
def test_the_facts_of_an_entry_are_told_apart(text: str, facts: list[str]) -> None:
    assert facts_of(text) == facts
    assert [each for fact in facts for each in facts_of(fact)] == facts
