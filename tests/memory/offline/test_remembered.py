"""Results for texts are computed once, and forgotten when workers are idle."""

from recollect.memory.texts.remembered import forget_texts, remember, remember_list


def test_a_short_text_is_computed_once_and_a_long_one_each_time() -> None:
    computed: list[str] = []

    @remember
    def length_of(text: str, more: int = 0) -> int:
        computed.append(text)
        return len(text) + more

    assert [length_of("ab"), length_of("ab"), length_of("ab", 1), length_of("a" * 5000)] == [2, 2, 3, 5000]
    length_of("a" * 5000)
    assert [len(text) for text in computed] == [2, 2, 5000, 5000]
    forget_texts()
    assert (length_of("ab"), len(computed)) == (2, 5)


def test_each_caller_gets_a_list_of_its_own() -> None:
    @remember_list
    def words_of(text: str) -> list[str]:
        return text.split()

    words_of("a b").append("c")
    assert words_of("a b") == ["a", "b"]
