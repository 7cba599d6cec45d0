"""Whose data an item is: decided by its namespace and by the running graph. Pure functions.

A namespace is a path of any labels, so a label alone says nothing: a user may be called like a label of
others. An item has an owner if a pattern of the store says where the user id stands, or if it is stored in a
run of a user whose id is a label of its namespace, or its key.
"""

from collections.abc import Sequence

from langchain_core.runnables.config import var_child_runnable_config

from ....errors import InvalidValueError
from ....memory.rights.langgraph_data import label_of_user
from ..place import user_of
from .namespaces import Namespace, user_of_label

USER = "{user_id}"
"""The place of the user id in a pattern. `*` stands for any label."""


def check_patterns(patterns: Sequence[Namespace]) -> tuple[Namespace, ...]:
    """The patterns. Raises `InvalidValueError` if one does not say where the user id is."""
    for pattern in patterns:
        if not isinstance(pattern, tuple) or pattern.count(USER) != 1:
            raise InvalidValueError(
                f"a pattern of owners must be a tuple of labels with one {USER!r}, not {pattern!r}"
            )
    return tuple(patterns)


def owner_in(namespace: Namespace, patterns: Sequence[Namespace]) -> str | None:
    """The user whom the first matching pattern finds. A pattern matches namespaces that begin with it."""
    for pattern in patterns:
        if len(namespace) >= len(pattern) and all(
            wanted in ("*", USER, label) for wanted, label in zip(pattern, namespace, strict=False)
        ):
            return user_of_label(namespace[pattern.index(USER)])
    return None


def owner_of(namespace: Namespace, key: str, patterns: Sequence[Namespace]) -> str | None:
    """The owner of an item that is stored now; `None` if it is unknown."""
    found = owner_in(namespace, patterns)
    if found is not None:
        return found
    running = var_child_runnable_config.get()
    user = user_of(running) if running else None
    names = set() if user is None else {user, label_of_user(user)}
    return user if names & {*namespace, key} else None
