"""The memory tool of Anthropic's SDK, with files in a database."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .memory_tool import AsyncMemoryTool as AsyncMemoryTool
    from .memory_tool import FileVersion as FileVersion
    from .memory_tool import MemoryTool as MemoryTool

_MODULES = {"AsyncMemoryTool": "memory_tool", "FileVersion": "memory_tool", "MemoryTool": "memory_tool"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="anthropic", needs="anthropic.tools.memory")
