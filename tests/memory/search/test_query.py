"""Parsing of questions."""

from datetime import date

import pytest

from recollect.memory.search.dates import NamedDate, Stretch
from recollect.memory.search.query import LONGEST, understand, without_names

SPEAKERS = ("Ada", "Ben", "user", "assistant")


def test_the_words_of_asking_are_not_looked_for() -> None:
    assert understand("When did she buy the blue bicycle?").terms == ("buy", "blue", "bicycl")


def test_a_question_of_nothing_but_such_words_is_looked_for_as_it_is() -> None:
    assert understand("who are you?").terms == ("who", "are", "you")


def test_speakers_are_known_by_their_names_and_not_looked_for_in_texts() -> None:
    query = understand("What did Ada's teacher say?", SPEAKERS)
    assert query.speakers == ("Ada",)
    assert "ada" not in query.terms
    assert query.embedding_text == "What did teacher say?"


def test_a_name_that_nobody_here_has_is_a_word_like_others() -> None:
    query = understand("What did Ada say?", ["Ben"])
    assert query.speakers == ()
    assert "ada" in query.terms


@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Where did I grow up?", "user"),
        ("我在哪里长大？", "user"),
        ("Which film did you recommend to me?", "assistant"),
        ("Where did Ada grow up?", None),
        ("Where is the office?", None),
    ],
)
def test_i_and_you_mean_the_user_and_the_assistant(question: str, role: str | None) -> None:
    assert understand(question, SPEAKERS).role == role


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What broke on 3 June, 2023?", NamedDate(2023, 6, 3)),
        ("What broke on June 3rd 2023?", NamedDate(2023, 6, 3)),
        ("What broke on the 3rd of June?", NamedDate(None, 6, 3)),
        ("What broke in June 2023?", NamedDate(2023, 6)),
        ("What broke in June?", NamedDate(None, 6)),
        ("What broke in 2023?", NamedDate(2023)),
        ("What broke on 2023-06-03?", NamedDate(2023, 6, 3)),
        ("2023年6月3日坏了什么？", NamedDate(2023, 6, 3)),
        ("6月坏了什么？", NamedDate(None, 6)),
    ],
)
def test_dates_are_read_and_taken_out_of_the_question(question: str, named: NamedDate) -> None:
    query = understand(question)
    assert query.dates == (named,)
    assert not any(character.isdigit() for character in query.embedding_text)
    assert "june" not in query.terms


@pytest.mark.parametrize(
    "question",
    ["May I bring a friend to the march?", "What broke on 31 February 2023?", "Who lives at number 2023456?"],
)
def test_what_only_looks_like_a_date_is_none(question: str) -> None:
    assert understand(question).dates == ()


def test_yesterday_is_understood_where_today_is_known() -> None:
    today = date(2024, 3, 1)
    yesterday = date(2024, 2, 29).toordinal()
    assert understand("What did I eat yesterday?", today=today).stretches == (Stretch(yesterday, yesterday),)
    assert understand("What did I eat yesterday?").stretches == ()


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("When did it start?", (True, False, False)),
        ("什么时候开始的？", (True, False, False)),
        ("Which city was it?", (False, True, False)),
        ("他叫什么名字？", (False, True, False)),
        ("How is the latest version?", (False, False, True)),
        ("How is the weather?", (False, False, False)),
    ],
)
def test_what_kind_of_answer_is_asked_for(question: str, asked: tuple[bool, bool, bool]) -> None:
    query = understand(question)
    assert (query.asks_when, query.asks_name, query.asks_newest) == asked


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("What instruments does she play?", True),
        ("How many cities did they see?", True),
        ("Where has he travelled?", True),
        ("她去过哪些城市？", True),
        ("What instrument does she play?", False),
        ("When did they leave?", False),
    ],
)
def test_whether_the_answer_may_lie_in_several_places(question: str, several: bool) -> None:
    assert understand(question).asks_several is several


def test_what_is_quoted_is_kept_word_for_word() -> None:
    assert understand('Who said "never again" to “the  Old man”?').phrases == ("never again", "the  old man")


def test_chinese_words_of_asking_are_not_looked_for() -> None:
    assert understand("护照什么时候到期？").terms == ("护照", "到期")


@pytest.mark.parametrize("question", ["", "   ", "?!...", "🙂🙃", "\x00", "***", "-- ;"])
def test_nothing_to_look_for_is_an_empty_question(question: str) -> None:
    assert understand(question, SPEAKERS).is_empty


def test_only_the_start_of_a_huge_question_is_read() -> None:
    query = understand("tram " * 1_000_000)
    assert len(query.text) == LONGEST
    assert query.terms == ("tram",)


def test_names_are_left_out_of_what_is_embedded_but_roles_are_words() -> None:
    said = "Ben, the user said Adam met Ada's friend"
    assert without_names(said, SPEAKERS) == ", the user said Adam met friend"


def test_a_text_that_is_nothing_but_a_name_stays() -> None:
    assert without_names("Ada", SPEAKERS) == "Ada"


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("How does Mohammed relax?", ("Muhammad",)),
        ("Does Katherine's boat leak?", ("Kathryn Vale",)),
        ("What did Ben cook?", ()),
        ("What happened in March?", ()),
    ],
)
def test_a_speaker_is_known_by_another_spelling_of_the_name(question: str, named: tuple[str, ...]) -> None:
    assert understand(question, ["Muhammad", "Kathryn Vale", "Whit"]).speakers == named


def test_a_spelling_that_two_speakers_share_names_neither() -> None:
    assert understand("What did Kathrine say?", ["Katherine", "Kathryn"]).speakers == ()


def test_a_question_about_the_user_is_the_question_of_the_user() -> None:
    query = understand("Where does the user's sister live?")
    assert (query.role, query.terms) == ("user", ("sister", "live"))
    assert understand("用户住在哪里？").role == "user"
