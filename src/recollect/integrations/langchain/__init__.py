"""A chat history and a retriever for LangChain, over sessions and long-term memory."""

from typing import TYPE_CHECKING, Any

from ...extras import require_extra

if TYPE_CHECKING:
    from .history import ChatHistory as ChatHistory
    from .messages import items_to_messages as items_to_messages
    from .messages import messages_to_items as messages_to_items
    from .retriever import MemoryRetriever as MemoryRetriever

_MODULES = {
    "ChatHistory": "history",
    "MemoryRetriever": "retriever",
    "items_to_messages": "messages",
    "messages_to_items": "messages",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is used first."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("langchain", "langchain_core.messages", f"recollect.integrations.langchain.{name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
