"""Texts that go to a model and come from one."""

import re

_THOUGHTS = re.compile(r"\s*<think>(?:.*?(</think>)|.*)", re.DOTALL)


def to_valid_unicode(text: str) -> str:
    """The text with each half of a surrogate pair replaced, so that UTF-8 can encode it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def strip_thoughts(text: str) -> str | None:
    """The response without a leading `<think>` block; `None` if the block has no end."""
    thoughts = _THOUGHTS.match(text)
    if thoughts is None:
        return text
    return None if thoughts[1] is None else text[thoughts.end() :]
