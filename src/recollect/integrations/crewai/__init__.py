"""A storage backend for the memory of CrewAI."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .storage import MemoryStorage as MemoryStorage

_MODULES = {"MemoryStorage": "storage"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="crewai", needs="crewai.memory")
