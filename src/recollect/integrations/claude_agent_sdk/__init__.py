"""Transcripts of the Claude Agent SDK, on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .prompting import with_memory as with_memory
    from .transcripts import TranscriptStore as TranscriptStore

_MODULES = {"with_memory": "prompting", "TranscriptStore": "transcripts"}
__all__ = sorted(_MODULES)
__getattr__ = import_on_use(__name__, _MODULES, extra="claude-agent-sdk", needs="claude_agent_sdk")
