"""Stored summaries of conversations, and their injection into the instructions of an agent."""

from .injection import build_injected_instructions, inject_memory
from .store import ConversationSummaryStore
from .summary import ConversationSummary

__all__ = [
    "ConversationSummary",
    "ConversationSummaryStore",
    "build_injected_instructions",
    "inject_memory",
]
