"""Which of equal items is a message, decided from what else was said."""

from recollect.memory.rights.same_words import Saying, Told, find_told, saying_of


def sayings(text: str) -> tuple[Saying, ...]:
    """Words, each said by somebody."""
    return tuple(saying_of("user", word) for word in text.split())


def found(said: str, place: int, held: str) -> list[int]:
    return find_told(Told(sayings(said), place), sayings(held))


def test_of_equal_ones_it_is_the_one_that_was_said_at_its_place() -> None:
    said = "hi yes well yes yes bye"
    assert [found(said, place, said) for place in (1, 3, 4)] == [[1], [3], [4]]


def test_words_that_no_other_message_has_are_found_wherever_they_are() -> None:
    assert found("hi secret bye", 1, "secret hi secret bye") == [0, 2]
    assert found("hi secret bye", 1, "hi bye") == []


def test_what_has_not_come_into_a_session_yet_is_not_found_there() -> None:
    assert found("yes yes", 1, "yes") == []


def test_where_some_are_missing_it_is_what_stands_around_that_tells() -> None:
    said = "yes no1 a b yes c d"
    assert found(said, 4, "a b yes c d") == [2]
    assert found("yes yes a", 1, "yes a") == [0]
    assert found("a yes b yes c yes d", 3, "a yes b yes") == [3]


def test_what_else_was_said_in_the_same_words_stays() -> None:
    assert found("a ok b c ok d", 4, "a ok b ok c ok d") == [5]


def test_another_role_is_another_message_and_parts_are_one_text() -> None:
    assert saying_of("user", "yes") != saying_of("assistant", "yes")
    assert saying_of("assistant", "the PIN \nis 1") == saying_of("assistant", "the PIN is 1")
    assert saying_of("user", "half \ud83d") == saying_of("user", "half ?")
