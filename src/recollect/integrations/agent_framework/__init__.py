"""A history provider and a context provider for the Microsoft Agent Framework."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .history import SessionHistory as SessionHistory
    from .memory import LongTermMemory as LongTermMemory

_MODULES = {"LongTermMemory": "memory", "SessionHistory": "history"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="agent-framework", needs="agent_framework")
