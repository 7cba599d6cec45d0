"""What the doctor looks at, part by part. It makes no file, and asks no model."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...errors import RecollectError
from ..database import configured, file_of, is_configured
from .database import Finding, guarded, is_for_everybody, look_at_file
from .memory import look_at_memory
from .models import KEYS_OF, look_at_models
from .servers import look_at_server

if TYPE_CHECKING:
    from ...memory.search.embedders import Embedder
    from ...server.settings import Settings

# What each extra brings, by the modules and the name under which it was installed.
EXTRAS = {
    "agents": ("agents", "openai-agents"),
    "anthropic": ("anthropic", "anthropic"),
    "encrypt": ("cryptography", "cryptography"),
    "mcp": ("mcp", "mcp"),
    "onnx": ("onnxruntime", "onnxruntime"),
    "openai": ("openai", "openai"),
    "otel": ("opentelemetry.sdk", "opentelemetry-sdk"),
    "postgres": ("sqlalchemy", "sqlalchemy"),
    "redis": ("redis", "redis"),
    "server": ("fastapi", "fastapi"),
}
_LONGEST_LOADING = 60.0  # seconds: the local embedder is a large file
_OLDEST = datetime(2026, 1, 1, tzinfo=UTC)  # nobody runs this before it was written


async def look(config: Path | None, url: str | None, find_url: Callable[[], str]) -> list[Finding]:
    """All findings. Without a configuration that can be read, those about the database are left out."""
    findings = [_versions(), _extras()]
    try:
        where = find_url()
        settings = configured(config, {"RECOLLECT_DATABASE__URL": url}) if is_configured(config) else None
    except (RecollectError, ValueError) as error:
        return [*findings, Finding("configuration", "wrong", str(error), "mend it, and ask again"), _clock()]
    findings += [_configuration(config), *_secrecy(config, settings), _clock()]
    path = file_of(where)
    findings += await look_at_server(where) if path is None else look_at_file(path)
    works = all(finding.state != "wrong" for finding in findings)
    found, embedder = await _embedder(settings)
    if works and (path is not None or where.startswith("postgres")):
        findings += await look_at_memory(where, settings, embedder)
    return [*findings, found, *await look_at_models(settings), await _service(settings)]


def _versions() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    found = f"recollect {version('recollect')}, Python {python}, SQLite {sqlite3.sqlite_version}"
    return Finding("versions", "ok", found)


def _extras() -> Finding:
    there = [name for name, (module, _) in EXTRAS.items() if _is_there(module)]
    missing = [name for name in EXTRAS if name not in there]
    told = ", ".join(f"{name} ({_version_of(EXTRAS[name][1])})" for name in there)
    fix = f"if you need more: pip install 'recollect[{','.join(missing)}]'" if missing else ""
    return Finding("extras", "ok", told or "none", fix)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # its parent is not there
        return False


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown version"


def _configuration(config: Path | None) -> Finding:
    """Which file and which variables, by their names: values may be secrets."""
    path = config or os.environ.get("RECOLLECT_CONFIG")
    names = sorted(
        name for name in os.environ if name.startswith("RECOLLECT_") and name != "RECOLLECT_CONFIG"
    )
    told = [f"file {path}"] if path else []
    told += [f"variables {', '.join(names)}"] if names else []
    return Finding(
        "configuration", "ok" if told else "off", "; ".join(told) or "nothing is configured: defaults"
    )


def _secrecy(config: Path | None, settings: "Settings | None") -> list[Finding]:
    """Whether others may read a file that holds a secret; what comes from the environment is in none."""
    path = Path(config or os.environ.get("RECOLLECT_CONFIG") or "")
    if settings is None or not path.is_file() or not is_for_everybody(path):
        return []
    from ...server.settings import load_settings

    alone = load_settings(path, {})
    if alone.chat.api_key is None and ":" not in urlsplit(alone.database.url).netloc.rpartition("@")[0]:
        return []
    told = f"everybody here may read {path}, which holds a key or a password"
    return [Finding("secrets", "warning", told, f"chmod 600 {path}, or keep them in the environment")]


def _clock() -> Finding:
    now = datetime.now(UTC)
    if now < _OLDEST:
        return Finding("clock", "wrong", f"it says {now:%Y-%m-%d %H:%M}", "set the clock of this machine")
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC")


# --- what works with it ---


async def _embedder(settings: "Settings | None") -> tuple[Finding, "Embedder | None"]:
    """Tried with one word; given back if it works."""
    from ...memory.search.embedders import build_embedder

    name = "local" if settings is None else settings.memory.embedder
    if name == "none":
        return Finding("embedder", "off", "none: search goes by words alone"), None
    made: list[Embedder] = []

    async def embed() -> Finding:
        embedder: Any = build_embedder(name)
        vectors = await embedder.embed(["hello"])
        made.append(embedder)
        return Finding("embedder", "ok", f"{name} answers, with {vectors.shape[1]} dimensions")

    found = await guarded("embedder", embed, _LONGEST_LOADING)
    if not made:
        return Finding("embedder", "wrong", found.found, _fix_of(name)), None
    return found, made[0]


def _fix_of(name: str) -> str:
    kind = name.partition(":")[0]
    return f"set {KEYS_OF[kind]}, or configure memory.embedder" if kind in KEYS_OF else "install it again"


async def _service(settings: "Settings | None") -> Finding:
    """Whether something listens where the service would."""
    host, port = ("127.0.0.1", 8765) if settings is None else (settings.server.host, settings.server.port)
    shown = f"{host}:{port}"
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return Finding("service", "off", f"nothing listens on {shown}", "start it: recollect serve")
    writer.close()
    await writer.wait_closed()
    return Finding("service", "ok", f"something listens on {shown}")
