"""What the figures were measured on: without it they mean nothing."""

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("recollect-memory", "openai-agents", "aiosqlite", "msgspec")


def describe_environment(directory: Path) -> dict[str, Any]:
    """The machine, the versions, and the file system that the files of the run lie on."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "file_system": file_system_of(directory),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def file_system_of(directory: Path) -> str:
    """The type of the file system that a directory is on, as in `ext4` or `tmpfs`."""
    mounts = [
        mount for mount in psutil.disk_partitions(all=True) if directory.is_relative_to(mount.mountpoint)
    ]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else "unknown"


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"
