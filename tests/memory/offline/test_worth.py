"""What is worth an entry between requests for work, and what is over with the conversation."""

import pytest

from .kit import texts

REQUEST = "can you help me with something?"
KEPT = [
    "I work nights at a bakery",
    "I've been vegan for six years",
    "I have a house in Kos",
    "I hate flying",
    "I'm terrified of spiders",
    "I always sit at the front",
    "I don't drink alcohol",
    "My sister is getting married in June",
    "I run 10k every morning",
    "I'm the CTO of a small startup",
    "I have three kids",
    "My dog is called Bruno",
    "I grew up in Poland",
    "I speak fluent Arabic",
    "I'm saving up for a van",
    "I only buy second-hand clothes",
    "I never eat breakfast",
    "I'm colour-blind",
    "I broke my wrist last Tuesday",
    "I'm flying to Rome on Friday",
    "I graduated in 2018",
    "We use Kubernetes in production",
    "Our deadline is 15 March",
    "We're not allowed to use GPL code",
    "I prefer trains to planes",
    "I can't eat shellfish",
    "I teach maths at a high school",
    "I'm learning to play the drums",
    "I want to become a pilot",
    "My mother lives in Izmir",
    "I have an interview on Thursday",
    "I bought a new bike last week",
    "I got promoted last month",
    "I retired in 2020",
    "I moved here from Chile",
    "I take blood thinners",
    "I wear hearing aids",
    "I play in a punk band",
    "I'm left-handed",
    "My wife is a surgeon",
    "我喜欢吃辣",
    "我不吃香菜",
    "我妈妈是医生",
    "我在读博士",
    "我下周一去上海出差",
    "我们公司用 Go 语言",
    "我养了两只狗",
    "我每天六点起床",
    "我大学学的是法律",
    "我怕狗",
]
LEFT_OUT = [
    "I broke the build again lol",
    "I have a headache",
    "I get it now!!",
    "I love it!",
    "I like the second one",
    "My fingers hurt lol",
    "I hate him right now",
    "I feel so tired today, maybe I'll skip it",
    "ok I'll ask my doctor",
    "I can see it now",
    "ah right, I always forget that",
    "I use the second method",
    "My code works now",
    "Our teacher gave us this",
    "I need it by tomorrow",
    "I was furious",
    "I don't remember",
    "I have another question",
    "I'm going to watch a movie and sleep",
    "gonna make dinner now",
    "I understand now",
    "I'll bring pills",
    "Let me think",
    "We'll sing tonight",
    "I disagree but fine",
    "I found it",
    "I'm done",
    "I've read it",
    "I've got it",
    "I've restarted it twice",
    "I think this looks good but the padding is off",
    "I lost my train of thought",
    "I love your explanations",
    "I never thought of that",
    "I always wondered about that",
    "I'm on the second page",
    "I'm in the settings now",
    "I have the app open",
    "I have two options, which one is better?",
    "I bought it yesterday and it's already broken",
    "I got the same result",
    "I got 42, is that right?",
    "I changed the password but it still fails",
    "I would say 5",
    "I'd say yes",
    "I only see three lights",
    "I use it every day",
    "I'm the same",
    "I'm 5 minutes away",
    "I'm outside",
    "I work on it",
    "I live for this lol",
    "my bad",
    "My answer is 24",
    "My guess is B",
    "My table has 3 columns",
    "My function returns None",
    "Our train is late",
    "We are here",
    "We did it!",
    "We have no idea",
    "I take it back",
    "I take your point",
    "I follow",
    "I can't open the file",
    "I can't find the button",
    "I can't log in",
    "I can't believe it",
    "I don't see it",
    "I don't like this answer",
    "I don't want that",
    "I hate this error",
    "I love this song",
    "I like how you explained it",
    "I like that",
    "I'm new here",
    "I'm back!",
    "I'm afraid it doesn't work",
    "I'm a bit confused",
    "I'm sure it's fine",
    "I'm just curious",
    "I'm asking for a friend",
    "I'm using your code",
    "I was thinking about pizza",
    "I was wrong",
    "I had to laugh",
    "I had no luck",
    "I had the same problem",
    "I went to settings and clicked save",
    "I started the server",
    "I started over",
    "I stopped the process",
    "I moved the file to src",
    "I moved on",
    "I left a comment",
    "I left it blank",
    "I quit the app",
    "I joined the call",
    "I passed the wrong argument",
    "I lost the connection",
    "I won't do that",
    "I reached the end",
    "I visited the page",
    "I opened a ticket",
    "I booked the wrong seat, can you change it?",
    "yesterday it worked fine",
    "it was fine on Monday",
    "The meeting is at 3",
    "The sun is shining",
    "Water boils at 100 degrees",
    "Napoleon was born in 1769",
    "The war ended in 1945",
    "The train leaves at 9:30 tomorrow",
    "我知道了",
    "我看到了",
    "我试过了，不行",
    "我要一杯咖啡",
    "我今天好开心",
    "我在路上",
    "我再想想",
    "我没听懂",
    "我写完了",
    "我有一个问题",
    "我的代码报错了",
    "我想问一下",
    "我觉得可以",
    "我们走吧",
]


@pytest.mark.parametrize("said", KEPT)
def test_what_will_matter_later_is_kept(said: str) -> None:
    assert len(texts(REQUEST, "assistant> Sure.", said)) == 1


@pytest.mark.parametrize("said", LEFT_OUT)
def test_what_is_over_with_the_conversation_is_left_out(said: str) -> None:
    assert texts(REQUEST, "assistant> Sure.", said) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("What is in Euclid's Elements Book I?", []),
        ("I'm reading about World War I.", None),
        (
            "I have a PhD in history, mostly World War I.",
            ["The user has a PhD in history, mostly World War I."],
        ),
    ],
)
def test_a_numeral_is_no_pronoun(said: str, told: list[str] | None) -> None:
    found = texts(said)
    assert told is None or found == told
    assert not any("the user." in text for text in found)


def test_what_others_say_is_not_what_the_user_says() -> None:
    assert texts("Look what my landlord wrote:\n> I live abroad.\n> I am selling the garage.") == []
    assert texts("[10:02] Bob: I live in Rome\n[10:03] Ann: I hate tea") == []
    assert texts("Bob: I live in Rome\nAnn: I hate tea\nBob: I have a dog") == []
    assert texts("```\nI live in Rome\n```") == []


def test_exercises_and_made_up_stories_are_left_out() -> None:
    assert texts("I have 5 apples and I give 2 to my sister. How many do I have?") == []
    assert texts("Let's say I have a class Person. I am Person, I live in Rome. How do I print that?") == []
    assert texts("Write an essay in the first person: I am a doctor and I live in Kenya.") == []
    assert texts("我有3个苹果，吃了1个，还剩几个？") == []


def test_no_digits_of_a_card_are_kept() -> None:
    assert (
        texts("The card I paid with ends in 4242, is that the one?", "My card number is 4556 7375 8689 9855.")
        == []
    )
