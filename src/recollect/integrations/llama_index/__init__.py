"""A chat store and a memory block for LlamaIndex."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .chat_store import ChatStore as ChatStore
    from .memory_block import RecallBlock as RecallBlock
    from .memory_block import RememberingMemory as RememberingMemory

_MODULES = {"ChatStore": "chat_store", "RecallBlock": "memory_block", "RememberingMemory": "memory_block"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="llama-index", needs="llama_index.core")
