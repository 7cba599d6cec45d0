"""What was said in a run: pure functions over what goes into it and comes out of it."""

from collections.abc import Sequence
from typing import Any

from ...items import is_user_message, text_of


def words_of_user(given: object) -> str:
    """What the user said last: a text as it is, or the newest of a history's user messages in a row."""
    if isinstance(given, str):
        return given
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, Sequence) else []
    last = next((place for place in reversed(range(len(items))) if is_user_message(items[place])), None)
    if last is None:
        return ""
    first = last
    while first and is_user_message(items[first - 1]):
        first -= 1
    return "\n".join(filter(None, map(text_of, items[first : last + 1])))


def words_of_answer(final_output: object, responses: Sequence[Any]) -> str:
    """What the agent said in the end: the words of its last message, else what a tool gave as the answer."""
    output = responses[-1].output if responses else ()
    said = [part for item in output if getattr(item, "type", None) == "message" for part in item.content]
    texts = [getattr(part, "text", None) or getattr(part, "refusal", None) for part in said]
    found = "\n".join(text for text in texts if isinstance(text, str))
    return found or ("" if final_output is None else str(final_output))
