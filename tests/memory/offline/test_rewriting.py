"""Rewriting the first person to the third."""

import pytest

from recollect.memory.offline.chinese import to_third_person as chinese_to_third_person
from recollect.memory.offline.english_rewriter import to_third_person

ENGLISH = {
    "I'm a baker.": "The user is a baker.",
    "I've lived here for long.": "The user has lived here for long.",
    "I don't eat fish.": "The user doesn't eat fish.",
    "I'll go with my aunt.": "The user will go with their aunt.",
    "I'd love to see Japan.": "The user would love to see Japan.",
    "I'd never been there.": "The user had never been there.",
    "I really try to rest.": "The user really tries to rest.",
    "I watch birds and teach maths.": "The user watches birds and teaches maths.",
    "I want to hike and swim.": "The user wants to hike and swim.",
    "I no longer smoke.": "The user no longer smokes.",
    "I went home and slept.": "The user went home and slept.",
    "My dog loves me.": "The user's dog loves the user.",
    "It makes me happy.": "It makes the user happy.",
    "My wife and I sing.": "The user and their wife sing.",
    "My name is Ana and I sing.": "The user's name is Ana and the user sings.",
    "We sold our car.": "The user and others sold their car.",
    "They took my bike.": "They took the user's bike.",
    "Been busy with exams.": "The user has been busy with exams.",
    "Gonna see my aunt.": "The user is going to see their aunt.",
    "Lost my keys again.": "The user lost their keys again.",
    "Love baking with rye.": "The user loves baking with rye.",
    "I hurt myself.": "The user hurt themselves.",
    "i have a boat": "The user has a boat",
}
CHINESE = {
    "我住在成都": "用户住在成都",
    "我的猫叫豆豆": "用户的猫叫豆豆",
    "我妈妈是医生": "用户的妈妈是医生",
    "我们去爬山": "用户等人去爬山",
    "昨天去了医院": "用户昨天去了医院",
}


@pytest.mark.parametrize(("said", "told"), ENGLISH.items())
def test_an_english_sentence_is_told_in_the_third_person(said: str, told: str) -> None:
    assert to_third_person(said) == told


@pytest.mark.parametrize(("said", "told"), CHINESE.items())
def test_a_chinese_sentence_is_told_in_the_third_person(said: str, told: str) -> None:
    assert chinese_to_third_person(said) == told


@pytest.mark.parametrize("said", ["The shop is shut.", "I told you.", "Let's see my car.", "Should I go?"])
def test_what_is_not_told_cleanly_is_not_told(said: str) -> None:
    assert to_third_person(said) is None


@pytest.mark.parametrize("said", ["商店关门了", "我告诉你了"])
def test_what_is_not_told_cleanly_in_chinese_is_not_told(said: str) -> None:
    assert chinese_to_third_person(said) is None
