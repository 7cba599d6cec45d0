"""The coding agents that we know, and where their documentation says that MCP servers are configured."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .files import Format, JsonFormat, TomlFormat

Scope: TypeAlias = Literal["user", "project"]


@dataclass(frozen=True)
class Client:
    """A coding agent."""

    title: str
    format: Format
    project_file: str | None
    """`None` if it has servers of the user only."""
    user_file: str
    """Below the home directory."""
    home_variable: str | None = None
    """A variable with another folder for the file of the user."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that its entries have besides `command` and `args`."""

    def path(self, scope: Scope, folder: Path) -> Path:
        """The file of a project in this folder, or of the user."""
        if scope == "project" and self.project_file:
            return folder / self.project_file
        given = os.environ.get(self.home_variable) if self.home_variable else None
        return Path(given) / Path(self.user_file).name if given else Path.home() / self.user_file

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        """The entry of a server that is started by a command."""
        return {**self.extra, "command": command, "args": arguments}


def _claude_desktop_file() -> str:
    if sys.platform == "darwin":
        return "Library/Application Support/Claude/claude_desktop_config.json"
    if sys.platform == "win32":
        return "AppData/Roaming/Claude/claude_desktop_config.json"
    return ".config/Claude/claude_desktop_config.json"


def _vscode_user_file() -> str:
    if sys.platform == "darwin":
        return "Library/Application Support/Code/User/mcp.json"
    if sys.platform == "win32":
        return "AppData/Roaming/Code/User/mcp.json"
    return ".config/Code/User/mcp.json"


CLIENTS = {
    "claude-code": Client(
        "Claude Code", JsonFormat("mcpServers"), ".mcp.json", ".claude.json", "CLAUDE_CONFIG_DIR"
    ),
    "codex": Client("Codex", TomlFormat(), ".codex/config.toml", ".codex/config.toml", "CODEX_HOME"),
    "claude-desktop": Client("Claude Desktop", JsonFormat("mcpServers"), None, _claude_desktop_file()),
    "windsurf": Client("Windsurf", JsonFormat("mcpServers"), None, ".codeium/windsurf/mcp_config.json"),
    "cursor": Client("Cursor", JsonFormat("mcpServers"), ".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client(
        "VS Code", JsonFormat("servers"), ".vscode/mcp.json", _vscode_user_file(), extra={"type": "stdio"}
    ),
}
