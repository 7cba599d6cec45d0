"""The settings of capture on this machine: the command line writes them, and the daemon reads them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..private_files import replace_privately

_FILE = "settings.json"
PAUSED = "paused"
"""The file that pauses capture. The hooks look for it themselves."""


@dataclass
class CaptureSettings:
    """Where to record, for whom, and what not."""

    url: str | None = None
    user: str | None = None
    agent: str = "assistant"
    tenant: str = "default"
    excluded: list[str] = field(default_factory=list)
    """Folders whose projects are neither recorded nor given memories."""


def read_settings(home: Path) -> CaptureSettings:
    """The settings in a folder; the defaults if there are none."""
    try:
        given: dict[str, Any] = json.loads((home / _FILE).read_text("utf-8"))
    except FileNotFoundError:
        return CaptureSettings()
    return CaptureSettings(**{name: given[name] for name in vars(CaptureSettings()) if name in given})


def write_settings(home: Path, settings: CaptureSettings) -> None:
    """Write the settings, completely or not at all."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replace_privately(home / _FILE) as temporary:
        temporary.write_text(json.dumps(vars(settings), indent=2), "utf-8")
