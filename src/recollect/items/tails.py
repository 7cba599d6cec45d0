"""The tail of a prompt: what is remembered about the newest question, right after it.

Nothing that a provider caches comes after the newest question, so a tail changes no cached prefix. It is an
item of its own, with a role that no user has, and it is not stored.
"""

from collections.abc import Sequence

from .shapes import Item, is_user_message, role_of, text_of, turn_starts

BEGIN = "<remembered-data>"
END = "</remembered-data>"
_ROLES = ("system", "developer")


def tail_item(text: str) -> Item:
    """The item with a tail."""
    return {"type": "message", "role": "system", "content": text}


def is_tail(item: Item) -> bool:
    """Whether an item is a tail, as a provider that stores its input returns it."""
    if role_of(item) not in _ROLES:
        return False
    text = text_of(item)
    return text.startswith(BEGIN) and text.rstrip().endswith(END)


def with_tail(items: Sequence[Item], text: str) -> list[Item]:
    """The items with a tail after the newest message of the user, if there are both."""
    starts = turn_starts(items)
    if not text or not starts:
        return list(items)
    place = starts[-1] + 1
    return [*items[:place], tail_item(text), *items[place:]]


def is_start(items: Sequence[Item]) -> bool:
    """Whether nothing was answered yet."""
    return all(is_user_message(item) or role_of(item) in _ROLES for item in items)
