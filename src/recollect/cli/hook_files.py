"""Adds hooks to the text of a settings file of a coding agent, and removes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .mcp_clients import jsonc
from .mcp_clients.files import ConfigurationFileError

MARK = "hook_client.py"
"""What the command of each of our hooks has in it."""
_KEY = "hooks"


@dataclass(frozen=True)
class HooksFormat:
    """Lists of hooks by event, under the key `hooks` of a JSON file, which may have comments."""

    is_grouped: bool = True
    """Whether the hooks of an event are in groups, which have a matcher."""
    heading: Mapping[str, Any] = field(default_factory=dict)
    """What a file of its own begins with."""

    def add(self, text: str, entry: Mapping[str, Any]) -> str:
        """The text with our hook at each event of the entry, after the hooks of others."""
        if not text.strip():
            hooks = {event: [self._wrapped(hook)] for event, hook in entry.items()}
            return json.dumps({**self.heading, _KEY: hooks}, indent=2) + "\n"
        text = self.remove(text)
        for event, hook in entry.items():
            text = self._set(text, event, [*self._held(text).get(event, []), self._wrapped(hook)])
        return text

    def remove(self, text: str) -> str:
        """The text without our hooks. Hooks of others stay."""
        for event, hooks in self._held(text).items():
            others = [each for each in hooks if MARK not in json.dumps(each)]
            if len(others) < len(hooks):
                text = self._set(text, event, others)
        return text

    def entry_of(self, text: str) -> Mapping[str, Any]:
        """Our hooks in a text, by event."""
        return {
            event: each["hooks"][0] if self.is_grouped else each
            for event, hooks in self._held(text).items()
            for each in hooks
            if MARK in json.dumps(each)
        }

    def _wrapped(self, hook: Mapping[str, Any]) -> dict[str, Any]:
        return {_KEY: [dict(hook)]} if self.is_grouped else dict(hook)

    def _held(self, text: str) -> dict[str, list[Any]]:
        held = _parse(text).value.get(_KEY, {})
        if not isinstance(held, dict) or not all(isinstance(each, list) for each in held.values()):
            raise ConfigurationFileError(f"has something else than lists under {_KEY}")
        return held

    def _set(self, text: str, event: str, hooks: list[Any]) -> str:
        """The text with the hooks of an event; without the event if there are none."""
        root = _parse(text)
        expected = {**root.value, _KEY: {**root.value.get(_KEY, {}), event: hooks}}
        held = root.member(_KEY)
        if held is None:
            changed = jsonc.set_member(text, root, _KEY, {event: hooks}, "  ")
        elif hooks:
            changed = jsonc.set_member(text, held.value, event, hooks, "  ")
        else:
            changed = jsonc.remove_member(text, held.value, event)
            del expected[_KEY][event]
        if _parse(changed).value != expected:
            raise ConfigurationFileError("has a form that cannot be changed safely: add the hooks by hand")
        return changed


def _parse(text: str) -> jsonc.Node:
    try:
        root = jsonc.parse(text)
    except ValueError as error:
        raise ConfigurationFileError(f"is not valid JSON, in {error}") from None
    if not isinstance(root.value, dict):
        raise ConfigurationFileError("must hold a JSON object")
    return root


@dataclass(frozen=True)
class HookFile:
    """Where an agent has its hooks."""

    format: HooksFormat
    user_file: str
    """Below the home folder."""
    project_file: str
    variable: str | None = None
    """A variable with another folder for the file of the user."""
    timeout: int = 1
    """In the unit of the agent. Our own deadline is far below it."""

    def path(self, variable: str | None, scope: str, folder: Path) -> Path:
        """The file of the user, or of a project in a folder. `variable` is the value of its variable."""
        if scope == "project":
            return folder / self.project_file
        return Path(variable) / Path(self.user_file).name if variable else Path.home() / self.user_file


FILES = {
    "claude-code": HookFile(
        HooksFormat(), ".claude/settings.json", ".claude/settings.local.json", "CLAUDE_CONFIG_DIR"
    ),
    "codex": HookFile(HooksFormat(), ".codex/hooks.json", ".codex/hooks.json", "CODEX_HOME"),
    "gemini": HookFile(HooksFormat(), ".gemini/settings.json", ".gemini/settings.json", timeout=1000),
    "cursor": HookFile(HooksFormat(False, {"version": 1}), ".cursor/hooks.json", ".cursor/hooks.json"),
    "vscode": HookFile(HooksFormat(False), ".copilot/hooks/recollect.json", ".github/hooks/recollect.json"),
}
