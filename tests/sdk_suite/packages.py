"""The SDK's source distribution with its tests, and the packages that these need, in a cache."""

import hashlib
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

# Those that our own tests do not need, so they are not in the lock.
_EXTRAS = (
    "asttokens",
    "executing",
    "fakeredis",
    "httpcore",
    "httpx",
    "inline-snapshot",
    "lupa",
    "pytest-asyncio",
    "pytest-mock",
    "sortedcontainers",
)


@dataclass(frozen=True)
class Packages:
    """Where things are in the cache."""

    sources: Path
    extras: Path


def fetch() -> Packages:
    """Get the sources of the installed version of the SDK, and the packages, unless they are in the cache."""
    known = os.environ.get("RECOLLECT_SUITE_CACHE")
    cache = Path(known) if known else Path.home() / ".cache" / "recollect-sdk-suite"
    sdk = version("openai-agents")
    sources, extras = cache / f"openai_agents-{sdk}", cache / f"extras-{_digest()}"
    if not sources.is_dir():
        _fetch_sources(sdk, sources)
    if not extras.is_dir():
        _pip("install", "--target", str(extras), *_EXTRAS)
    return Packages(sources, extras)


def _digest() -> str:
    """Another list of packages gets another folder."""
    return hashlib.sha256(" ".join(_EXTRAS).encode()).hexdigest()[:8]


def _fetch_sources(sdk: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as folder:
        name = f"openai-agents=={sdk}"
        _pip("download", "--no-binary", "openai-agents", "--no-build-isolation", "--dest", folder, name)
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        unpacked = Path(folder) / target.name
        if not (unpacked / "tests" / "memory").is_dir():
            raise SystemExit(f"the source distribution of openai-agents {sdk} has no session tests")
        # The installed package is tested, not the copy beside the tests.
        (unpacked / "src").rename(unpacked / "src-unused")
        unpacked.rename(target)


def _pip(command: str, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, *arguments], check=True)
