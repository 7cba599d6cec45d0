"""What is shown cannot act on a terminal, and stands in columns whatever the script."""

import pytest

from recollect.cli.output import (
    display_width,
    escape_control_characters,
    indent_lines,
    one_line,
    table,
    truncate,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 中文 and 👩‍🔬", "plain, 中文 and 👩‍🔬"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),  # the same in one character
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
        ("\ud800", "\\ud800"),
        ("over\rwritten", "over\\rwritten"),
        ("hidden\u200b\U000e0041", "hidden\\u200b\\U000e0041"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_its_code(text: str, shown: str) -> None:
    assert escape_control_characters(text) == shown


def test_a_line_of_a_table_is_one_line() -> None:
    assert one_line(" a\r\nb\tc\x1b ") == "a b c\\x1b"


def test_each_line_of_a_text_is_indented() -> None:
    assert indent_lines("a\r\nb", "  ") == "  a\n  b"


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("中文", 4), ("e\u0301", 1), ("", 0)])
def test_columns_are_counted_as_a_terminal_counts_them(text: str, columns: int) -> None:
    assert display_width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "shown"), [("abcdef", 6, "abcdef"), ("abcdef", 4, "abc…"), ("中文字", 4, "中…")]
)
def test_a_text_is_shortened_to_columns(text: str, columns: int, shown: str) -> None:
    assert truncate(text, columns) == shown


def test_columns_stand_beneath_each_other() -> None:
    lines = table(("NAME", "N"), [("中文", 1), ("b", 22)]).splitlines()
    assert lines == ["NAME  N", "中文  1", "b     22"]
