"""A session service and a memory service for Google's Agent Development Kit (ADK)."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .memory_plugin import MemoryPlugin as MemoryPlugin
    from .memory_service import MemoryService as MemoryService
    from .session_service import SessionService as SessionService

_MODULES = {
    "MemoryPlugin": "memory_plugin",
    "MemoryService": "memory_service",
    "SessionService": "session_service",
}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="adk", needs="google.adk")
