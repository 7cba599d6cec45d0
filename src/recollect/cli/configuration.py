"""What commands share with the service: its configuration."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..extras import require_extra

if TYPE_CHECKING:
    from ..server.settings import Settings

_FILE = "RECOLLECT_CONFIG"


def is_configured(path: Path | None) -> bool:
    """Whether there is a configuration besides `RECOLLECT_URL`, which needs nothing to be read."""
    return path is not None or any(name == _FILE or _is_setting(name) for name in os.environ)


def configured(path: Path | None, given: Mapping[str, str | None]) -> "Settings":
    """The settings of the file and the environment, with those in their place that a command was given.

    They are given by the names of their variables, such as `RECOLLECT_SERVER__PORT`.
    """
    require_extra("server", "pydantic", "a configuration")
    from ..server.settings import load_settings

    return load_settings(
        path, os.environ | {name: value for name, value in given.items() if value is not None}
    )


def configured_url(path: Path | None) -> str | None:
    """The URL of the database, as far as it was configured."""
    if is_configured(path):
        return configured(path, {}).database.url
    return os.environ.get("RECOLLECT_URL") or None


def _is_setting(name: str) -> bool:
    return name.startswith("RECOLLECT_") and "__" in name
