"""A session repository for Strands Agents."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .hooks import MemoryHooks as MemoryHooks
    from .repository import Repository as Repository

_MODULES = {"MemoryHooks": "hooks", "Repository": "repository"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="strands", needs="strands.session")
