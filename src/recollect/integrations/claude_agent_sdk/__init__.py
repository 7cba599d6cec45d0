"""Transcripts of the Claude Agent SDK, on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

if TYPE_CHECKING:
    from .transcripts import TranscriptStore as TranscriptStore

_MODULES = {"TranscriptStore": "transcripts"}
__all__ = ["TranscriptStore"]
__getattr__ = import_on_use(__name__, _MODULES, extra="claude-agent-sdk", needs="claude_agent_sdk")
