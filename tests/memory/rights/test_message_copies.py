"""Which items and events are copies of an erased message: by their links, and else by their words."""

from recollect.memory.conversation import read_messages
from recollect.memory.rights.session_items import Copy, erased_message, find_copies, wording_of
from recollect.memory.times import now


def found(said: str, place: int, copies: str, links: dict[int, str] | None = None) -> list[int]:
    """The places of the copies of a message, for words of one user; item ids are counted from 1."""
    given = [
        {"role": "user", "content": word, "message_id": f"m{number}"}
        for number, word in enumerate(said.split())
    ]
    message = erased_message(read_messages(given, now()), f"m{place}")
    among = [Copy(number, wording_of("user", word)) for number, word in enumerate(copies.split(), 1)]
    return find_copies(message, among, links or {})


def test_links_decide_among_equal_words() -> None:
    links = {1: "m0", 2: "m1", 3: "m2"}
    assert [found("yes no yes", place, "yes no yes", links) for place in (0, 1, 2)] == [[0], [1], [2]]
    assert found("yes yes", 1, "yes", {1: "m0"}) == []


def test_a_link_finds_a_copy_in_other_words() -> None:
    assert found("secret", 0, "S3CRET", {1: "m0"}) == [0]


def test_words_that_no_other_message_has_are_found_in_every_unlinked_copy() -> None:
    assert found("hi secret bye", 1, "secret hi secret bye", {3: "m1"}) == [0, 2]
    assert found("hi secret bye", 1, "secret hi secret bye") == [0, 2]
    assert found("hi secret bye", 1, "hi bye") == []


def test_without_links_equal_copies_stand_in_the_order_of_the_messages() -> None:
    said = "hi yes well yes yes bye"
    assert [found(said, place, said) for place in (1, 3, 4)] == [[1], [3], [4]]


def test_without_links_all_equal_copies_go_where_it_is_not_certain_which_is_meant() -> None:
    assert found("a ok b c ok d", 4, "a ok b ok c ok d") == [1, 3, 5]
    assert found("yes yes a", 1, "yes a") == [0]


def test_messages_and_copies_with_links_take_no_part_in_counting() -> None:
    assert found("yes yes yes", 0, "yes yes yes", {3: "m2"}) == [0]
    assert found("yes yes yes", 1, "yes yes yes", {3: "m2"}) == [1]


def test_of_a_message_that_cannot_be_read_only_linked_copies_are_found() -> None:
    message = erased_message((), "m1")
    among = [
        Copy(1, wording_of("user", "yes")),
        Copy(2, wording_of("user", "yes")),
        Copy(None, wording_of("user", "")),
    ]
    assert find_copies(message, among, {2: "m1"}) == [1]


def test_the_role_counts_and_line_breaks_between_parts_do_not() -> None:
    assert wording_of("user", "yes") != wording_of("assistant", "yes")
    assert wording_of("assistant", "the PIN \nis 1") == wording_of("assistant", "the PIN is 1")
    assert wording_of("user", "half \ud83d") == wording_of("user", "half ?")
