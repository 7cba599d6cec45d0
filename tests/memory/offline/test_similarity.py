"""Whether two texts say the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.texts.similarity import meaning_of, say_the_same, says_more

SAME = [
    ("The user lives in Ghent.", "The user resides in Ghent"),
    ("The user loves hiking.", "The user really enjoys hiking!"),
    ("The user has two dogs.", "The user has 2 dogs."),
    ("The user sang on 7 May 2023 (said on 8 May 2023).", "The user sang yesterday, 7 May 2023."),
    ("The user sang on 7 May 2023.", "The user sang on May 7, 2023."),
    ("Painting relaxes the user.", "The user is relaxed by painting."),
    ("The user sold a car (said on 8 May 2023).", "The user sold a car (said on 9 June 2023)."),
    ("The user flew from Rome to Oslo.", "The user flew to Oslo from Rome."),
    ("The user loves hiking and swimming.", "The user loves swimming and hiking."),
    ("Yesterday the user sang with Ann.", "The user sang with Ann yesterday."),
    ("The user's favourite food is sushi.", "Sushi is the user's favourite food."),
    ("Ann lent Bob a bike.", "Ann lent a bike to Bob."),
    ("Ann and Bob visited the user.", "Bob and Ann visited the user."),
    ("The user doesn't eat meat.", "The user eats no meat."),
    ("In Rome the user met Ann.", "The user met Ann in Rome."),
    ("The user is allergic to peanuts.", "The user has a peanut allergy."),
    ("用户昨天从罗马飞到奥斯陆", "昨天用户从罗马飞到了奥斯陆"),
    ("用户住在成都。", "用户居住在成都"),
    ("用户非常喜欢喝茶。", "用户喜欢喝茶"),
]
DIFFERENT = [
    ("The user lives in Ghent.", "The user lives in Lima."),
    ("The user lives in Ghent.", "The user lived in Ghent."),
    ("The user likes tea.", "The user does not like tea."),
    ("The user likes tea.", "The user likes coffee."),
    ("The user sang on 7 May 2023.", "The user sang on 8 May 2023."),
    ("The user sang in May 2023.", "The user sang in May 2022."),
    ("The user has two dogs.", "The user has three dogs."),
    ("The user prefers tea to coffee.", "The user prefers coffee to tea."),
    ("The user wants to move to Lima.", "The user moved to Lima."),
    (
        "The user works as a nurse at the city hospital in Leeds.",
        "The user's sister works as a nurse at the city hospital in Leeds.",
    ),
    ("The user flew from Rome to Oslo.", "The user flew from Oslo to Rome."),
    ("The user drove from Boston to Miami with Ann.", "The user drove from Miami to Boston with Ann."),
    ("The user lent Bob to Ann.", "The user lent Ann to Bob."),
    ("Bob lent Ann a bike.", "Ann lent Bob a bike."),
    ("Bob lent the user his old bike.", "The user lent Bob his old bike."),
    ("The user gave the book to Ann.", "Ann gave the book to the user."),
    ("The user's dog bit Ann's cat.", "Ann's cat bit the user's dog."),
    ("The user was bitten by Ann.", "Ann was bitten by the user."),
    ("Ann introduced Bob to Carl.", "Ann introduced Carl to Bob."),
    ("The user works from 9 to 5.", "The user works from 5 to 9."),
    ("The user has 3 cats.", "The user has 2 cats."),
    ("The user has 3 cats and 2 dogs.", "The user has 2 cats and 3 dogs."),
    ("The user eats fish, not meat.", "The user eats meat, not fish."),
    (
        "The user does not like tea and does not like coffee.",
        "The user likes tea and likes coffee.",
    ),
    (
        "The user is allergic to peanuts, tree nuts, shellfish and eggs.",
        "The user is allergic to peanuts, tree nuts, shellfish, eggs and latex.",
    ),
    ("用户从罗马飞到奥斯陆。", "用户从奥斯陆飞到罗马。"),
    (
        "用户上周从罗马坐飞机到奥斯陆参加了朋友的婚礼，在那里住了整整十天，还拍了很多很多照片",
        "用户上周从奥斯陆坐飞机到罗马参加了朋友的婚礼，在那里住了整整十天，还拍了很多很多照片",
    ),
    ("用户借给小明一本关于欧洲历史的书", "小明借给用户一本关于欧洲历史的书"),
    ("用户有三只猫和两只狗", "用户有两只猫和三只狗"),
    ("用户吃鱼不吃肉", "用户吃肉不吃鱼"),
    ("用户住在成都。", "用户住在南京"),
    ("用户喜欢喝茶", "用户不喜欢喝茶"),
    ("用户的妹妹住在成都", "用户的姐姐住在成都"),
    ("用户2023年5月7日唱了歌", "用户2023年5月8日唱了歌"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_these_say_the_same(one: str, other: str) -> None:
    assert say_the_same(one, other)
    assert say_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_these_do_not_say_the_same(one: str, other: str) -> None:
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters()), st.text(st.characters()))
def test_any_two_texts_can_be_compared_either_way(one: str, other: str) -> None:
    assert say_the_same(one, one)
    assert say_the_same(one, other) == say_the_same(other, one)


def test_a_text_that_also_knows_the_date_says_more() -> None:
    dated = meaning_of("The user moved to a house near Ghent in May 2023.")
    plain = meaning_of("The user moved to a house near Ghent.")
    assert says_more(dated, plain)
    assert not says_more(plain, dated)
