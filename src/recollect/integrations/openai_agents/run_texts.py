"""The texts of a run: the user's message and the answer, as pure functions over its input and output."""

from collections.abc import Sequence
from typing import Any

from ...items import is_user_message, text_of


def user_text(given: object) -> str:
    """The last message of the user: a text as it is, or the newest consecutive user messages of a history."""
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


def answer_text(final_output: object, responses: Sequence[Any]) -> str:
    """The answer of an agent: the text of its last message, else the output of the tool that ended it."""
    output = responses[-1].output if responses else ()
    said = [part for item in output if getattr(item, "type", None) == "message" for part in item.content]
    texts = [getattr(part, "text", None) or getattr(part, "refusal", None) for part in said]
    found = "\n".join(text for text in texts if isinstance(text, str))
    return found or ("" if final_output is None else str(final_output))
