"""Standing instructions, allergies and diets in many phrasings, and what sounds like one and is none."""

import pytest

from .kit import candidates, texts

WISHES = {
    "please answer only in German from now on.": "the assistant to answer only in German from now on",
    "i prefer short answers": "short answers",
    "please stop apologising all the time": "the assistant to stop apologising all the time",
    "do me a favour and stop congratulating me on everything": (
        "the assistant to stop congratulating them on everything"
    ),
    "I'd be grateful if you kept things brief, I read these on the bus": "the assistant to keep things brief",
    "I don't want any disclaimers.": "no disclaimers",
    "tabs, not spaces.": "tabs, not spaces",
    "docstrings: never.": "no docstrings",
    "Metric only.": "metric only",
    "2) Never start without a greeting.": "the assistant to never start without a greeting",
    "answers in UK spelling please": "answers in UK spelling",
    "errors should always be wrapped": "errors to always be wrapped",
    "one question at a time please": "one question at a time",
    "Do stop saying absolutely, would you?": "the assistant to stop saying absolutely",
    "can u keep it casual pls": "the assistant to keep it casual",
    "stop it with the exclamation marks": "the assistant to stop using exclamation marks",
    "When you show diffs, show only the changed lines": (
        "the assistant to show only the changed lines when it shows diffs"
    ),
    "No deadlifts for me.": "no deadlifts",
}
CHINESE_WISHES = {
    "变量名别用拼音": "用户希望助手变量名别用拼音。",
    "请不要每次都跟我说加油": "用户希望助手不要每次都跟用户说加油。",
    "三四句就够了": "用户希望助手回答三四句就够了。",
    "推荐餐厅的时候请写上价格": "用户希望助手推荐餐厅的时候写上价格。",
}
NO_WISHES = [
    "never mind",
    "don't tell me you're compiling, just show me the breakdown",
    "No need to ask again.",
    "Stop asking and just proceed.",
    "I'd appreciate it if you could provide a detailed explanation of the code.",
    "They are well organized and always keep the backlog up to date.",
    "It must be cheap, use low data, and be strictly under 20 dollars.",
    "Explain why the centroid is always inside.",
    "No explanation is needed.",
    "If you can do that, please start with the summary.",
    "quiz night is cancelled for good",
    "no race for me this year",
    "less is more",
    "call me a taxi",
    "make it shorter",
]
FOOD = {
    "I have a severe shellfish allergy, so careful": "The user is allergic to shellfish.",
    "nothing with sesame, it closes my throat right up": "The user reacts badly to sesame.",
    "bee stings put me in hospital once": "The user reacts badly to bee stings.",
    "latex makes me itch": "The user reacts badly to latex.",
    "Bianca doesn't do gluten": "Bianca does not eat gluten.",
    "my doctor told me to avoid salt": "The user avoids salt.",
    "no gluten for me": "The user does not eat gluten.",
    "I keep kosher": "The user eats kosher.",
    "my dad is diabetic": "The user's dad has diabetes.",
    "no onion no garlic": "The user does not eat onions.",
    "I'm keto these days so no bread": "The user is on a keto diet.",
    "Type 1 diabetic, on insulin since I was 12": "The user has type 1 diabetes.",
    "mum is coeliac": "The user's mum is coeliac.",
    "我吃虾会过敏": "用户对虾过敏。",
    "我一喝牛奶就拉肚子": "用户对牛奶有不良反应。",
    "医生让我少吃盐": "用户要少吃盐。",
    "我一点辣都吃不了": "用户不吃辣。",
}
NO_FOOD = [
    "I'm allergic to stupid questions haha",
    "no dairy for me before runs",
    "Chocolate makes me happy",
    "People should avoid sugar.",
    "I can't eat now, I'm at work",
    "Coffee is out, we need to buy more",
    "the vegan restaurant was closed",
    "I thought I was allergic to cats",
    "My friend might be allergic to nuts",
    "我对加班过敏",
]


@pytest.mark.parametrize(("said", "wish"), WISHES.items(), ids=list(WISHES))
def test_a_standing_instruction_is_heard(said: str, wish: str) -> None:
    found = [each for each in candidates(said) if each.content_type == "instruction"]
    assert [each.text for each in found] == [f"The user wants {wish}."]


@pytest.mark.parametrize(("said", "text"), CHINESE_WISHES.items(), ids=list(CHINESE_WISHES))
def test_a_standing_instruction_is_heard_in_chinese(said: str, text: str) -> None:
    assert texts(said) == [text]


@pytest.mark.parametrize("said", NO_WISHES)
def test_a_request_of_the_moment_is_no_standing_instruction(said: str) -> None:
    assert [each.text for each in candidates(said) if each.content_type == "instruction"] == []


@pytest.mark.parametrize(("said", "text"), FOOD.items(), ids=list(FOOD))
def test_an_allergy_or_a_diet_is_heard(said: str, text: str) -> None:
    assert text in texts(said)


@pytest.mark.parametrize("said", NO_FOOD)
def test_what_sounds_like_an_allergy_or_a_diet_is_not_learned(said: str) -> None:
    assert texts(said) == []
