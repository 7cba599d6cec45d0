"""The session test suite, for your own session classes (needs pytest), and servers for tests (do not)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contract import SessionContract as SessionContract

__all__ = ["SessionContract"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import contract  # needs pytest

    return getattr(contract, name)
