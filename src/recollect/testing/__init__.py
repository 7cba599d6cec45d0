"""The session test suite, for your own session classes. Needs pytest."""

from .contract import SessionContract

__all__ = ["SessionContract"]
