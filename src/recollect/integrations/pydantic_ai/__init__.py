"""Conversations, strategies and long-term memory for Pydantic AI."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .conversations import Conversations as Conversations
    from .history import history_processor as history_processor
    from .memory import LongTermMemory as LongTermMemory
    from .memory import memory_toolset as memory_toolset

_MODULES = {
    "Conversations": "conversations",
    "LongTermMemory": "memory",
    "history_processor": "history",
    "memory_toolset": "memory",
}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="pydantic-ai", needs="pydantic_ai.conversation_store")
