"""Summaries that are kept for a conversation, and how they come into an agent's instructions."""

from .injection import build_injected_instructions, inject_memory
from .store import ConversationSummaryStore
from .summary import ConversationSummary

__all__ = [
    "ConversationSummary",
    "ConversationSummaryStore",
    "build_injected_instructions",
    "inject_memory",
]
