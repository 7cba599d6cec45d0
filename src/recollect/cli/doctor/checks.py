"""All checks of the doctor. They create no file and send no prompt to a model."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...errors import RecollectError
from ..database import is_configured, load_configuration, sqlite_file
from .database import Finding, check_file, is_world_accessible, run_check
from .memory import check_memory
from .models import KEYS_OF, check_models
from .servers import check_server

if TYPE_CHECKING:
    from ...memory.search.embedders import Embedder
    from ...server.settings import Settings

# Each extra with a module that it installs and the name of the distribution.
EXTRAS = {
    "adk": ("google.adk", "google-adk"),
    "agent-framework": ("agent_framework", "agent-framework-core"),
    "agents": ("agents", "openai-agents"),
    "anthropic": ("anthropic", "anthropic"),
    "claude-agent-sdk": ("claude_agent_sdk", "claude-agent-sdk"),
    "crewai": ("crewai", "crewai"),
    "encrypt": ("cryptography", "cryptography"),
    "langchain": ("langchain_core", "langchain-core"),
    "langgraph": ("langgraph", "langgraph"),
    "llama-index": ("llama_index.core", "llama-index-core"),
    "mcp": ("mcp", "mcp"),
    "mysql": ("asyncmy", "asyncmy"),
    "onnx": ("onnxruntime", "onnxruntime"),
    "openai": ("openai", "openai"),
    "otel": ("opentelemetry.sdk", "opentelemetry-sdk"),
    "postgres": ("sqlalchemy", "sqlalchemy"),
    "pydantic-ai": ("pydantic_ai", "pydantic-ai-slim"),
    "redis": ("redis", "redis"),
    "remote": ("httpx2", "httpx2"),
    "server": ("fastapi", "fastapi"),
    "strands": ("strands", "strands-agents"),
}
_NEED_OLD_MCP = ("crewai", "strands")  # they need mcp 1, and the extra mcp needs mcp 2
_LONGEST_LOADING = 60.0  # seconds; the local embedder is a large file
_OLDEST = datetime(2026, 1, 1, tzinfo=UTC)  # an earlier clock is wrong: this code did not exist then


async def run_checks(config: Path | None, url: str | None, find_url: Callable[[], str]) -> list[Finding]:
    """Run all checks. If the configuration is invalid, the database checks are skipped."""
    findings = [Finding("versions", "ok", describe_versions()), _extras()]
    try:
        where = find_url()
        settings = (
            load_configuration(config, {"RECOLLECT_DATABASE__URL": url}) if is_configured(config) else None
        )
    except (RecollectError, ValueError) as error:
        return [
            *findings,
            Finding("configuration", "wrong", str(error), "fix the configuration and run the doctor again"),
            _clock(),
        ]
    findings += [_configuration(config), *_secrets(config, settings), _clock()]
    path = sqlite_file(where)
    findings += await check_server(where) if path is None else check_file(path)
    works = all(finding.state != "wrong" for finding in findings)
    found, embedder = await _embedder(settings)
    if works and (path is not None or where.startswith("postgres")):
        findings += await check_memory(where, settings, embedder)
    return [*findings, found, *await check_models(settings), await _service(settings)]


def describe_versions() -> str:
    """The versions of this package, Python and SQLite."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"recollect {version('recollect-memory')}, Python {python}, SQLite {sqlite3.sqlite_version}"


def _extras() -> Finding:
    installed = [name for name, (module, _) in EXTRAS.items() if _is_installed(module)]
    missing = [name for name in EXTRAS if name not in installed]
    text = ", ".join(f"{name} ({_version_of(EXTRAS[name][1])})" for name in installed)
    fixes = [
        f"pip install 'recollect-memory[{','.join(group)}]'" for group in _installable(installed, missing)
    ]
    return Finding("extras", "ok", text or "none", f"optional: {' or '.join(fixes)}" if fixes else "")


def _installable(installed: Sequence[str], missing: Sequence[str]) -> list[list[str]]:
    """The missing extras in groups, each of which can be installed beside those that are installed."""
    apart = [name for name in missing if name in _NEED_OLD_MCP]
    rest = [name for name in missing if name not in _NEED_OLD_MCP]
    if "mcp" in installed:
        apart = []
    elif any(name in _NEED_OLD_MCP for name in installed):
        rest = [name for name in rest if name != "mcp"]
    return [group for group in (rest, apart) if group]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # its parent package is missing
        return False


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown version"


def _configuration(config: Path | None) -> Finding:
    """Name the file and the variables. Values are not shown: they may be secrets."""
    path = config or os.environ.get("RECOLLECT_CONFIG")
    names = sorted(
        name for name in os.environ if name.startswith("RECOLLECT_") and name != "RECOLLECT_CONFIG"
    )
    text = [f"file {path}"] if path else []
    text += [f"variables {', '.join(names)}"] if names else []
    return Finding(
        "configuration", "ok" if text else "off", "; ".join(text) or "not configured; using the defaults"
    )


def _secrets(config: Path | None, settings: "Settings | None") -> list[Finding]:
    """Warn if other users can read a configuration file that contains a secret."""
    path = Path(config or os.environ.get("RECOLLECT_CONFIG") or "")
    if settings is None or not path.is_file() or not is_world_accessible(path):
        return []
    from ...server.settings import load_settings

    alone = load_settings(path, {})
    if alone.chat.api_key is None and ":" not in urlsplit(alone.database.url).netloc.rpartition("@")[0]:
        return []
    text = f"all users of this machine can read {path}, which holds a key or a password"
    return [
        Finding("secrets", "warning", text, f"chmod 600 {path}, or move the secrets to environment variables")
    ]


def _clock() -> Finding:
    now = datetime.now(UTC)
    if now < _OLDEST:
        return Finding(
            "clock", "wrong", f"the clock shows {now:%Y-%m-%d %H:%M}", "set the clock of this machine"
        )
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC")


# --- embedder and service ---


async def _embedder(settings: "Settings | None") -> tuple[Finding, "Embedder | None"]:
    """Embed one word. Return the finding, and the embedder if it works."""
    from ...memory.search.embedders import build_embedder

    name = "local" if settings is None else settings.memory.embedder
    if name == "none":
        return Finding("embedder", "off", "none; search uses words only"), None
    made: list[Embedder] = []

    async def embed() -> Finding:
        embedder: Any = build_embedder(name)
        vectors = await embedder.embed(["hello"])
        made.append(embedder)
        return Finding("embedder", "ok", f"{name} works, with {vectors.shape[1]} dimensions")

    found = await run_check("embedder", embed, _LONGEST_LOADING)
    if not made:
        return Finding("embedder", "wrong", found.found, _embedder_fix(name)), None
    return found, made[0]


def _embedder_fix(name: str) -> str:
    kind = name.partition(":")[0]
    return f"set {KEYS_OF[kind]}, or configure memory.embedder" if kind in KEYS_OF else "reinstall it"


async def _service(settings: "Settings | None") -> Finding:
    """Check whether a process listens on the address of the service."""
    host, port = ("127.0.0.1", 8765) if settings is None else (settings.server.host, settings.server.port)
    shown = f"{host}:{port}"
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return Finding("service", "off", f"no process listens on {shown}", "start it: recollect serve")
    writer.close()
    await writer.wait_closed()
    return Finding("service", "ok", f"a process listens on {shown}")
