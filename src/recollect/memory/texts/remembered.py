"""Remembers what pure functions made of a text: the stages of a run ask the same of the same few texts.

Only short texts are remembered, and only so many, so the memory used is bounded. Idle workers forget all of
them.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST = 1000  # characters of a text
_MOST = 1024  # texts of a function
_forget: list[Callable[[], None]] = []


def remember(function: F) -> F:
    """The same function, which computes the result of a short text once. Nobody may change the result.

    The text is its first parameter.
    """
    remembered = lru_cache(maxsize=_MOST)(function)
    _forget.append(remembered.cache_clear)

    @wraps(function)
    def call(text: str, *others: Hashable) -> Any:
        return (remembered if len(text) <= _LONGEST else function)(text, *others)

    return cast(F, call)


def remember_list(function: F) -> F:
    """As `remember`, for a function that returns a list. Each caller gets a list of its own."""
    remembered = remember(function)

    @wraps(function)
    def call(text: str, *others: Hashable) -> Any:
        return remembered(text, *others).copy()

    return cast(F, call)


def forget_texts() -> None:
    """Forget all texts."""
    for forget in _forget:
        forget()
