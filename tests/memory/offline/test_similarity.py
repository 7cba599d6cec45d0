"""Whether two texts say the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.similarity import meaning_of, say_the_same, says_more

SAME = [
    ("The user lives in Ghent.", "The user resides in Ghent"),
    ("The user loves hiking.", "The user really enjoys hiking!"),
    ("The user has two dogs.", "The user has 2 dogs."),
    ("The user sang on 7 May 2023 (said on 8 May 2023).", "The user sang yesterday, 7 May 2023."),
    ("The user sang on 7 May 2023.", "The user sang on May 7, 2023."),
    ("Painting relaxes the user.", "The user is relaxed by painting."),
    ("The user sold a car (said on 8 May 2023).", "The user sold a car (said on 9 June 2023)."),
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
