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

from ..errors import RecollectError
from .configuration import configured, is_configured
from .doctor_database import Finding, guarded, look_at_database
from .opening import file_of
from .output import plural

if TYPE_CHECKING:
    from ..server.settings import Settings

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
_OLDEST = datetime(2026, 1, 1, tzinfo=UTC)  # nobody runs this before it was written
_KEYS_OF = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


async def look(config: Path | None, url: str | None, find_url: Callable[[], str]) -> list[Finding]:
    """All findings. Without a configuration that can be read, those about the database are left out."""
    findings = [_versions(), _extras()]
    try:
        where = find_url()
        settings = configured(config, {"RECOLLECT_DATABASE__URL": url}) if is_configured(config) else None
    except (RecollectError, ValueError) as error:
        return [*findings, Finding("configuration", "wrong", str(error), "mend it, and ask again"), _clock()]
    findings += [_configuration(config), _clock()]
    findings += await look_at_database(where)
    holds_memory = file_of(where) is not None or where.startswith("postgres")
    if holds_memory and all(finding.state != "wrong" for finding in findings):
        findings += [await guarded("keys", lambda: _keys(where, settings)), await _runs(where)]
    findings += [await _embedder(settings), _model(settings), await _service(settings)]
    return findings


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


def _clock() -> Finding:
    now = datetime.now(UTC)
    if now < _OLDEST:
        return Finding("clock", "wrong", f"it says {now:%Y-%m-%d %H:%M}", "set the clock of this machine")
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC")


# --- what works on it ---


async def _keys(url: str, settings: "Settings | None") -> Finding:
    from ..server.access.keys import KeyStore

    path = file_of(url)
    if path is not None and not path.exists():
        return Finding("keys", "off", "none: the service is open to this machine")
    async with KeyStore(url) as keys:
        valid = sum(key.is_valid(datetime.now(UTC)) for key in await keys.list())
    host = "127.0.0.1" if settings is None else settings.server.host
    if valid:
        return Finding("keys", "ok", f"{plural(valid, 'valid key')}")
    from ..server.addresses import is_loopback

    if not is_loopback(host):
        fix = "make one: recollect keys create --tenant NAME --scope admin"
        return Finding("keys", "wrong", f"none, and the service is to listen on {host}", fix)
    return Finding("keys", "off", "none: the service is open to this machine")


async def _runs(url: str) -> Finding:
    from ..memory.store import MemoryStore

    path = file_of(url)
    if path is not None and not path.exists():
        return Finding("learning", "off", "there is nothing to learn from")

    async def count() -> Finding:
        async with MemoryStore(url, workers=0, embedder=None, all_tenants=True) as store:
            now = await store.coverage()
        told = f"{now.remembered} conversations remembered, {now.pending} pending, {now.failed} failed"
        if now.failed:
            return Finding("learning", "warning", told, "see why: recollect runs list --status failed")
        return Finding("learning", "ok", told)

    return await guarded("learning", count)


async def _embedder(settings: "Settings | None") -> Finding:
    """Tried with one word."""
    from ..memory.search.embedders.named import embedder_named

    name = "local" if settings is None else settings.memory.embedder
    if name == "none":
        return Finding("embedder", "off", "none: search goes by words alone")

    async def embed() -> Finding:
        embedder: Any = embedder_named(name)
        vectors = await embedder.embed(["hello"])
        return Finding("embedder", "ok", f"{name} answers, with {vectors.shape[1]} dimensions")

    found = await guarded("embedder", embed)
    if found.state == "wrong":
        return Finding("embedder", "wrong", found.found, _fix_of(name))
    return found


def _model(settings: "Settings | None") -> Finding:
    """It is not asked: that would cost tokens."""
    name = "offline" if settings is None else settings.memory.extractor
    kind = name.partition(":")[0]
    if kind not in _KEYS_OF:
        return Finding("model", "ok", f"{name}: learns by rule, with no key")
    if not _is_there(kind):
        return Finding("model", "wrong", f"{name} needs the extra {kind}", f"pip install 'recollect[{kind}]'")
    if not os.environ.get(_KEYS_OF[kind]):
        return Finding("model", "wrong", f"{name} has no key", f"set {_KEYS_OF[kind]}")
    return Finding("model", "ok", f"{name}, with a key that was not tried")


def _fix_of(name: str) -> str:
    kind = name.partition(":")[0]
    return f"set {_KEYS_OF[kind]}, or configure memory.embedder" if kind in _KEYS_OF else "install it again"


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
