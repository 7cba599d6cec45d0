"""Overrides that a shortcut would bypass.

An ability such as `add_batch` stores items without a call of `add_items`. A subclass that masks or encrypts
items in its own `add_items` inherits that shortcut, and the shortcut would store them in clear. So an
ability counts only if its class is at least as derived as the classes that override the methods below.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

_TEXTS = ("_serialize_item", "_deserialize_item")
_WRITING = ("add_items", *_TEXTS)
_READING = ("get_items", *_TEXTS)
_BYPASSED_BY: dict[str, Sequence[str]] = {
    "transform_items": _WRITING,
    "replace_items": _WRITING,
    "revise_items": _WRITING,
    "add_batch": ("add_items",),
    "pop_checked": ("pop_item", *_TEXTS),
    "begin_run": ("get_items",),
    "read_after": _READING,
    "read_before": _READING,
    # Notes hold summaries of what was read.
    "get_note": _READING,
    "set_note": _READING,
}


def bypassed_override(session: object, ability: str) -> str | None:
    """The overridden method that an ability of the session would bypass, `None` if there is none.

    A class that sets `keeps_abilities = True` in its own body states that its overrides may be bypassed.
    """
    overriding = _defined_above(session, ability)
    methods = _BYPASSED_BY.get(ability, ())
    return next((method for method in methods if any(method in names for names in overriding)), None)


def _defined_above(session: object, name: str) -> list[Mapping[str, object]]:
    """The attributes of the object and of its classes, up to the class that defines a name."""
    own = getattr(session, "__dict__", {})
    if name in own:
        return []
    classes = takewhile(lambda each: name not in vars(each), type(session).__mro__)
    return [own, *(vars(each) for each in classes if not vars(each).get("keeps_abilities", False))]
