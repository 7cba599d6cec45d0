"""Remembers what pure functions made of a text: the stages of a run ask the same of the same few texts.

Only short texts are remembered, and only so many, so the memory used is bounded. Idle workers forget all of
them.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST = 1000  # characters of a text
_MOST = 1024  # texts of a function
_forget: list[Callable[[], None]] = []


def remember(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """The same function, which computes the result of a short text once. Nobody may change the result."""
    remembered = lru_cache(maxsize=_MOST)(function)
    _forget.append(remembered.cache_clear)

    @wraps(function)
    def call(text: str, *args: P.args, **kwargs: P.kwargs) -> T:
        return (remembered if len(text) <= _LONGEST else function)(text, *args, **kwargs)

    return call


def remember_list(function: Callable[Concatenate[str, P], list[T]]) -> Callable[Concatenate[str, P], list[T]]:
    """As `remember`. Each caller gets a list of its own."""
    remembered = remember(function)

    @wraps(function)
    def call(text: str, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        return remembered(text, *args, **kwargs).copy()

    return call


def forget_texts() -> None:
    """Forget all texts."""
    for forget in _forget:
        forget()
