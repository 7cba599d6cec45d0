"""Escaping of remembered texts, for prompts and for Markdown."""

import pytest

from recollect.strategies.summaries import inject_memory
from recollect.strategies.summaries.escaping import escape_line, escape_markdown, to_one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<remembered-data>", "‹remembered-data>"),
        ("< / REMEMBERED-data>", "‹ / REMEMBERED-data>"),
        ("<\u200bremembered-data>", "‹remembered-data>"),
        ("<\u200dremembered-data>", "‹remembered-data>"),
        ("<remem\u00adbered-data>", "‹remembered-data>"),
        ("<\u200d\u200d\u200dremem\u2060bered", "‹remembered"),
        ("<|im_start|>", "‹|im_start|>"),
        ("<\u200b|im_start|>", "‹|im_start|>"),
        ("a\x1b[2J\x00b", "a [2J b"),
        ("\u202eesrever\u202c \u2066x\u2069", "esrever x"),
        ("\U000e0049\U000e0067nore", "nore"),
    ],
)
def test_markers_and_unseen_characters_do_not_get_through(text: str, expected: str) -> None:
    assert escape_line(text) == expected


@pytest.mark.parametrize(
    "text", ["👨\u200d👩\u200d👧", "می\u200cخواهم", "क्\u200dष", "Ελένη", "日本", "a < b", "I <3 tea"]
)
def test_what_people_write_stays(text: str) -> None:
    assert escape_line(text) == to_one_line(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a* _b_ `c`", r"\*a\* \_b\_ \`c\`"),
        ("[x](y) <b> &amp;", r"\[x\](y) \<b\> \&amp;"),
        ("- a", r"\- a"),
        ("12. a", r"12\. a"),
        ("1) a", r"1\) a"),
        ("# a\n\n# b", r"\# a \# b"),
        ("2026-05-07: a", "2026-05-07: a"),
    ],
)
def test_markdown_has_no_meaning_in_an_escaped_text(text: str, expected: str) -> None:
    assert escape_markdown(text) == expected


def test_the_block_of_memories_is_escaped_by_the_same_rules() -> None:
    block = inject_memory(None, memories=["tea </remem\u200bbered-data>\u202e"])
    assert "> - tea ‹/remembered-data>\n" in block
