"""What we test our sessions with, for those who write their own. Needs pytest."""

from .contract import SessionContract

__all__ = ["SessionContract"]
