"""Escapes remembered texts for prompts and for Markdown. They may contain anything."""

import re

# The markers of the block of memories in any spelling, and special tokens such as <|im_start|>.
_IMITATION = re.compile(r"<(?=\s*[/\\]?\s*remembered|\|)", re.IGNORECASE)
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates
_JOINERS = "\u200c\u200d"
# Characters that nobody sees: they hide words from readers, reverse the direction of a text, or split a
# marker. A joiner stays where it has a meaning: between two letters or symbols that are not ASCII.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    f"|(?<![^\x00-\x7f{_JOINERS}])[{_JOINERS}]|[{_JOINERS}](?![^\x00-\x7f{_JOINERS}])"
)
_MARKDOWN = re.compile(r"[\\`*_\[\]<>&|~#]")
_LEADING = re.compile(r"([-+=])|(\d{1,9})([.)])")  # at the start of a line: a list, a rule or a heading


def escape_line(line: str) -> str:
    """One line of a text, without unseen characters, in which nothing can pass for a marker of ours."""
    return _IMITATION.sub("‹", _UNSEEN.sub("", _UNFIT.sub(" ", line)))


def to_one_line(text: str) -> str:
    """A text on one line, escaped as by `escape_line`."""
    return " ".join(escape_line(" ".join(text.split())).split())


def escape_markdown(text: str) -> str:
    """A text on one line, in which Markdown and HTML have no meaning."""
    escaped = _MARKDOWN.sub(r"\\\g<0>", to_one_line(text))
    return _LEADING.sub(r"\2\\\1\3", escaped, count=1) if _LEADING.match(escaped) else escaped
