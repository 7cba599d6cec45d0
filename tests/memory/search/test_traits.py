"""Traits of texts: what they state, what they prefer, and whom they address."""

import pytest

from recollect.memory.search.records import Place, check, make_record
from recollect.memory.search.traits import traits_of


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("I live in Lisbon.", 1.0),
        ("The user lives in Lisbon.", 1.0),
        ("我住在里斯本。", 1.0),
        ("用户住在里斯本。", 1.0),
        ("I live here. Where is it?", 0.5),
        ("Do I live in Lisbon?", 0.0),
        ("Can you help me.", 0.0),
        ("The tram is late.", 0.0),
        ("你住在哪里？", 0.0),
    ],
)
def test_a_statement_is_about_its_speaker_and_no_question(text: str, share: float) -> None:
    assert traits_of(text, None).statement == share


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("I prefer tea and I hate coffee.", 1.0),
        ("I love tea, always did, and avoid milk.", 1.0),
        ("我喜欢茶，讨厌咖啡。", 1.0),
        ("My son is allergic to nuts.", 0.5),
        ("我对花生过敏", 0.5),
        ("People prefer tea.", 0.0),
        ("I took the tram.", 0.0),
    ],
)
def test_a_preference_is_what_the_speaker_likes_or_avoids(text: str, preference: float) -> None:
    assert traits_of(text, None).preference == preference


@pytest.mark.parametrize(
    ("text", "is_instruction"),
    [
        ("Always answer in French.", True),
        ("Fine.\n\n  Never use emoji.", True),
        ("Thanks! From now on, call me Ada.", True),
        ("以后用法语回答", True),
        ("记住我的名字", True),
        ("I always take the tram.", False),
        ("我住在里斯本。", False),
    ],
)
def test_an_instruction_says_how_to_behave(text: str, is_instruction: bool) -> None:
    assert traits_of(text, None).is_instruction is is_instruction


@pytest.mark.parametrize(
    ("text", "addressed"),
    [
        ("Hey Ada, how are you?", "ada"),
        ("Wow, thanks Ada! That helps.", "ada"),
        ("What do you think, Ada?", "ada"),
        ("Ada, 你好", "ada"),
        ("I met Ada.", None),
        ("Sure, Lisbon is nice.", None),
        ("Okay, what is next?", None),
        ("你好，今天怎么样？", None),
    ],
)
def test_a_name_is_addressed_where_someone_is_spoken_to(text: str, addressed: str | None) -> None:
    assert traits_of(text, None).addressed == addressed


@pytest.mark.parametrize("character", ["x", "A", "我", "?", "\n", " ", ".", '"', "“", "a.", "1-", "```\n"])
def test_a_text_of_200_kilobytes_without_words_is_read_in_linear_time(character: str) -> None:
    """A time that is quadratic in the length would take minutes, and the test would never end."""
    record = make_record((character * 200_000)[:200_000], Place(role="user"))
    check(record)
