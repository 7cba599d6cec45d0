"""Changes: which new statement ends which known one."""

import pytest

from recollect.memory.facts.changes import ends, tells_of_the_past

ENDED = [
    ("The user lives in Lisbon.", "The user moved from Lisbon to Porto."),
    ("The user lives in Lisbon.", "The user moved to Berlin in March 2026."),
    ("The user is vegetarian.", "The user is not vegetarian any more."),
    ("The user is vegetarian.", "The user is no longer vegetarian."),
    ("The user is vegetarian.", "The user isn't a vegetarian anymore."),
    ("The user is vegan.", "The user eats meat again."),
    ("The user works at Siemens.", "The user left Siemens."),
    ("The user works at Siemens.", "The user works at Bosch."),
    ("The user works at Siemens as an engineer.", "The user quit their job."),
    (
        "The user is a nurse at the children's hospital in Cologne.",
        "The user quit their job at the hospital in the week before 30 May 2026.",
    ),
    ("The user is a nurse.", "The user retired."),
    ("The user is a teacher.", "The user is between jobs."),
    ("The user's girlfriend is Paula.", "The user and Paula broke up."),
    ("The user's girlfriend is Paula.", "The user broke up with Paula."),
    ("The user's girlfriend is Paula.", "The user broke up with their girlfriend."),
    ("The user is married to Tom.", "The user got divorced."),
    ("The user is married.", "The user is divorced."),
    ("The user's boyfriend is Max.", "The user is single."),
    ("The user has a cat called Otto.", "The user's cat Otto died in May 2026."),
    ("The user drives a 2015 Golf.", "The user sold the Golf."),
    ("The user drives a 2015 Golf.", "The user drives an electric Kia now."),
    (
        "The user and others are on Postgres 15.",
        "The user and others upgraded to Postgres 17 on the weekend before 3 August 2026.",
    ),
    ("The user uses jest.", "The user uses vitest instead of jest."),
    ("The user uses Python 3.8.", "The user and others switched from Python 3.8 to Python 3.12."),
    ("The user drinks their coffee black.", "The user stopped drinking coffee."),
    ("The user smokes.", "The user gave up smoking."),
    ("The user smokes ten cigarettes a day.", "The user quit smoking on 1 January 2026."),
    ("The user started keto on 1 February 2026.", "The user gave up on keto."),
    ("The user goes climbing twice a week.", "The user is not climbing any more."),
    (
        "The user gets married on 19 September 2026.",
        "The user and others postponed the wedding to 3 October 2026.",
    ),
    ("The user's exam is on 3 March 2026.", "The user's exam was moved to 10 March 2026."),
    ("The user likes tea.", "The user doesn't like tea any more."),
    ("The user loves jazz.", "The user hates jazz now."),
    (
        "The user wants the assistant to answer in German.",
        "The user wants the assistant to answer in English.",
    ),
    ("The user's daughter Mia is 7.", "The user's daughter Mia is 8 now."),
    ("The user's favourite colour is blue.", "The user's favourite colour is green."),
    ("Theo is the user's flatmate.", "Theo moved out in June 2026."),
    ("The user lives with their sister.", "The user's sister moved out."),
    ("用户住在杭州。", "用户2026年6月搬到深圳了。"),
    ("用户在一家银行上班。", "用户现在在腾讯做产品经理。"),
    ("用户吃素。", "用户不吃素了。"),
    ("用户的女朋友叫小雨。", "用户和小雨分手了。"),
    ("用户抽烟。", "用户戒烟了。"),
    ("用户喜欢爵士乐。", "用户不喜欢爵士乐了。"),
    ("The user goes to the gym every morning.", "The user stopped going to the gym."),
    ("The user plays bass in a band.", "The user left the band."),
    ("The user takes metformin.", "The user no longer takes metformin."),
    ("The user lives in Lisbon and is allergic to peanuts.", "The user moved to Porto."),
    ("The user prefers tabs.", "The user prefers spaces now."),
    ("The user is learning Spanish.", "The user stopped learning Spanish."),
    ("The user's manager is Sabine.", "The user's new manager is Tom."),
    ("The user plans a trip to Portugal in May 2026.", "The user and others cancelled the trip to Portugal."),
    ("The user is single.", "The user got engaged to Lea."),
    ("The user is pregnant.", "The user had a baby in March 2026."),
    ("The user is a student.", "The user graduated in July 2026."),
]
STANDING = [
    ("The user is allergic to peanuts.", "The user moved to Berlin."),
    ("The user has a dog.", "The user's cat died."),
    ("The user has two cats.", "The user's cat Otto died."),
    ("The user plays golf.", "The user sold the Golf."),
    ("The user lives in Oslo.", "The user lived in Bergen for six years."),
    ("The user lives in Oslo.", "In 2010 the user moved to Spain for a year."),
    ("The user lives in Oslo.", "When the user was a kid they lived in Ghent."),
    ("The user works as a baker.", "The user used to be a fisherman."),
    ("The user speaks Dutch and English.", "The user speaks Polish."),
    ("The user is allergic to peanuts.", "The user is allergic to penicillin."),
    ("The user has a daughter, Noor.", "The user had a son in July 2026."),
    ("The user likes tea.", "The user doesn't like coffee."),
    ("The user's daughter Mia is 7.", "The user's son Ben is 8."),
    ("用户对海鲜过敏。", "用户搬到了深圳。"),
    ("用户住在北京。", "用户小时候住在成都。"),
    ("The user uses an iPhone 12.", "The user switched to a Pixel 9."),
    ("The user's gym is FitX.", "The user cancelled their gym membership."),
    ("The user works from home.", "The user works in the office again."),
]


@pytest.mark.parametrize(("known", "new"), ENDED)
def test_a_change_ends_what_was_so(known: str, new: str) -> None:
    assert ends(new, known)


@pytest.mark.parametrize(("known", "new"), STANDING)
def test_what_is_about_something_else_or_the_past_ends_nothing(known: str, new: str) -> None:
    assert not ends(new, known)


@pytest.mark.parametrize("known", [known for known, _ in ENDED])
def test_nothing_ends_itself(known: str) -> None:
    assert not ends(known, known)


def test_a_stay_that_is_over_is_the_past() -> None:
    assert tells_of_the_past("The user lived in Bergen for six years.")
    assert not tells_of_the_past("The user has lived in Bergen for six years.")
