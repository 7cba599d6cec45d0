"""A chat history and a retriever for LangChain, over sessions and long-term memory."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .history import ChatHistory as ChatHistory
    from .messages import items_to_messages as items_to_messages
    from .messages import messages_to_items as messages_to_items
    from .middleware import MemoryMiddleware as MemoryMiddleware
    from .retriever import MemoryRetriever as MemoryRetriever

_MODULES = {
    "MemoryMiddleware": "middleware",
    "ChatHistory": "history",
    "MemoryRetriever": "retriever",
    "items_to_messages": "messages",
    "messages_to_items": "messages",
}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="langchain", needs="langchain_core.messages")
