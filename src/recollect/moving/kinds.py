"""The kinds of sources, each with its reader."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..errors import InvalidValueError
from .records import Read, Record, Skipped


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may need besides its source."""

    tenant: str = "default"
    """The tenant: ids of records differ between tenants, since a database holds each id once."""
    agent_id: str | None = None
    """The agent, whatever the source says; `None` to let the source say."""
    user_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of source: the module of its reader, and whether conversations of it are to be learned from."""

    name: str
    module: str
    words: str
    learns: bool = False
    needs_owner: bool = True
    """Whether the source does not say whose it is."""

    def read(self, source: str, options: ReadOptions) -> Read | AsyncIterator[Record | Skipped]:
        """The records of a source."""
        read: Callable[..., Any] = import_module(f".readers.{self.module}", __package__).open_source
        records: Read | AsyncIterator[Record | Skipped] = read(source, options)
        return records


KINDS = {
    kind.name: kind
    for kind in (
        Kind("jsonl", "lines", "Recollect's own line format", True, False),
        Kind("chatgpt", "chatgpt", "the data export of ChatGPT: its zip, or conversations.json", True),
        Kind("claude", "claude", "the data export of Claude: its zip, or conversations.json", True),
        Kind("mem0", "mem0", "files of mem0: history.db, its folder, or JSON of its API", False),
        Kind("letta", "letta", "an agent file of Letta (.af)", False),
        Kind("graphiti", "graphiti", "nodes, edges and episodes of Graphiti or Zep as JSON", False),
        Kind("zep", "graphiti", "the same as graphiti", False),
        Kind(
            "langgraph",
            "langgraph",
            "checkpoints and a store of LangGraph, on SQLite or PostgreSQL",
            False,
            False,
        ),
        Kind(
            "openai-agents",
            "openai_agents",
            "sessions of the Agents SDK, on SQLite, PostgreSQL or Redis",
            False,
            False,
        ),
        Kind(
            "openai-conversations",
            "openai_conversations",
            "conversations of the OpenAI API, by their ids",
            False,
        ),
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name."""
    if name not in KINDS:
        raise InvalidValueError(f"unknown kind {name[:40]!r}: use one of {', '.join(KINDS)}")
    return KINDS[name]
