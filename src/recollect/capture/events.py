"""The hooks of each coding agent: the events that are installed, what they mean, and the answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Meaning: TypeAlias = Literal["start", "prompt", "record", "compact"]
"""Give the pages; give what is recalled; record what was said; record, and note the state of the work."""


@dataclass(frozen=True)
class Hooks:
    """The hooks of one agent, by the names of its events."""

    title: str
    events: Mapping[str, Meaning]
    program: str | None = None
    """The program whose transcripts are read; `None` where their format is not documented."""
    is_told_at_prompt: bool = True
    """Whether a hook can add something to a prompt."""


HOOKS: dict[str, Hooks] = {
    "claude-code": Hooks(
        "Claude Code",
        {
            "SessionStart": "start",
            "UserPromptSubmit": "prompt",
            "PreCompact": "compact",
            "Stop": "record",
            "StopFailure": "record",
            "SubagentStop": "record",
            "SessionEnd": "record",
        },
        "claude-code",
    ),
    "codex": Hooks(
        "Codex",
        {"SessionStart": "start", "UserPromptSubmit": "prompt", "PreCompact": "compact", "Stop": "record"},
        "codex",
    ),
    "gemini": Hooks(
        "Gemini CLI",
        {
            "SessionStart": "start",
            "BeforeAgent": "prompt",
            "PreCompress": "record",  # it comes before each turn, whether anything is compressed or not
            "AfterAgent": "record",
            "SessionEnd": "record",
        },
        "gemini",
    ),
    "cursor": Hooks(
        "Cursor",
        {
            "sessionStart": "start",
            "beforeSubmitPrompt": "prompt",
            "afterAgentResponse": "record",
        },
        is_told_at_prompt=False,
    ),
    "vscode": Hooks("VS Code", {"SessionStart": "start", "UserPromptSubmit": "prompt"}),
}


@dataclass(frozen=True)
class Event:
    """An event that an agent reported."""

    agent: str
    event_id: str
    name: str
    data: Mapping[str, Any]

    @property
    def hooks(self) -> Hooks:
        """The hooks of its agent."""
        return HOOKS[self.agent]

    @property
    def meaning(self) -> Meaning | None:
        """What it means; `None` for one that was not asked for."""
        return self.hooks.events.get(self.name)

    @property
    def session_id(self) -> str:
        """The session of the agent."""
        return str(self._first("session_id", "sessionId", "conversation_id") or "unknown")

    @property
    def cwd(self) -> str | None:
        """The working folder."""
        roots = self.data.get("workspace_roots")
        found = self._first("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
        return found if isinstance(found, str) else None

    @property
    def prompt(self) -> str:
        """What the user typed."""
        return self._text("prompt")

    @property
    def answer(self) -> str:
        """What the agent said."""
        return self._text("text") if self.name == "afterAgentResponse" else ""

    @property
    def transcript(self) -> str | None:
        """The path of the transcript."""
        return self._text("transcript_path") or None

    @property
    def is_after_compaction(self) -> bool:
        """Whether the agent starts again after it compacted its context."""
        return self.data.get("source") == "compact"

    def reply(self, text: str) -> bytes:
        """What the hook prints, so that the agent gets a text; nothing if there is none."""
        if not text or (self.meaning == "prompt" and not self.hooks.is_told_at_prompt):
            return b""
        told: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": self.name, "additionalContext": text}}
        return json.dumps({"additional_context": text} if self.agent == "cursor" else told).encode()

    def _first(self, *names: str) -> Any:
        return next((self.data[name] for name in names if self.data.get(name)), None)

    def _text(self, name: str) -> str:
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


def parse_event(given: bytes) -> Event:
    """The event that the client sent: a line with the agent and an id, and the JSON of the agent.

    Raises a `ValueError` if it is something else.
    """
    head, _, body = given.partition(b"\n")
    agent, _, event_id = head.decode("ascii").partition(" ")
    data = json.loads(body)
    if agent not in HOOKS or not event_id or not isinstance(data, dict):
        raise ValueError("not an event of a known agent")
    return Event(agent, event_id, str(data.get("hook_event_name") or data.get("hookEventName")), data)
