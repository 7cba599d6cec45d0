"""Whether two sentences say something else of the same thing."""

import pytest

from recollect.memory.texts.values import differ_in_value

CHANGED = (
    ("I live in Leeds.", "I live in York."),
    ("The user's rent is 950 a month.", "The user's rent is 610 a month."),
    ("The chairperson of the club is Mahmoud Abbas.", "The chairperson of the club is the Queen of Spain."),
    ("My favourite colour is blue.", "My favourite colour is green."),
    ("The colour of my boat is blue.", "The colour of my boat is red."),
    ("The type of music that Bo plays is jazz.", "The type of music that Bo plays is rock."),
    ("My sister is a nurse.", "My sister is a teacher."),
    ("My boat is at pier 4.", "My boat is at pier 7."),
    ("Anna plays the part of Hamlet.", "Anna plays the part of Ophelia."),
    ("My phone number is 555 0101", "My phone number is now 555 0202"),
    ("我的生日是五月三日。", "我的生日是六月九日。"),
    ("我住在北京。", "我现在住在上海。"),
    ("Ich wohne jetzt in Leipzig.", "Ich wohne jetzt in Jena."),
    ("Я живу в Москве сейчас.", "Я живу в Казани сейчас."),
    ("私は東京に住んでいます。", "私は京都に住んでいます。"),
    ("저는 지금 서울에 살아요.", "저는 지금 부산에 살아요."),
)
UNCHANGED = (
    ("I live in Leeds.", "I live in Leeds."),
    ("I live in Leeds.", "I live with two cats."),
    ("Ada lives in Rome.", "Bo lives in Rome."),
    ("Team 3 won the cup in May.", "Team 4 won the cup in May."),
    ("My sister lives in Madrid.", "My brother lives in Madrid."),
    ("I work as a nurse.", "I work on Sundays."),
    ("I live in Leeds.", "The weather in Leeds is awful this week."),
    ("I went to Rome with Tom.", "I went home."),
    ("I like tea.", "I like tea and biscuits."),
    ("我妹妹住在上海。", "我弟弟住在上海。"),
    ("我喜欢喝茶。", "我喜欢在周末爬山。"),
    ("Ich wohne in Leipzig.", "Ich arbeite bei den Stadtwerken."),
    ("The meeting is on Monday.", "The meeting was long and tiring."),
    ("My dog is called Otto.", "My dog is ill."),
    ("My boat is blue.", "My boat is fast."),
    ("My sister is a nurse.", "My sister is tired."),
)


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_a_later_sentence_with_another_value_is_about_the_same_thing(old: str, new: str) -> None:
    assert differ_in_value(old, new)
    assert differ_in_value(new, old)


@pytest.mark.parametrize(("old", "new"), UNCHANGED)
def test_a_later_mention_that_changes_nothing_is_about_another_thing(old: str, new: str) -> None:
    assert not differ_in_value(old, new)
    assert not differ_in_value(new, old)


def test_what_the_question_names_is_no_value() -> None:
    rome, oslo = "The head of state in Italy is in Rome.", "The head of state in Norway is in Rome."
    assert not differ_in_value(rome, oslo, {"norway", "head", "state"})
