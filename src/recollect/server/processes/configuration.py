"""Where a configuration comes from, so that a restart can read it again."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..settings import Settings, load_settings


@dataclass(frozen=True)
class ConfigurationSource:
    """A configuration file and the options of a command, which override it and the environment."""

    path: Path | None
    options: Mapping[str, str]
    """By variable names, such as `RECOLLECT_SERVER__PORT`."""

    def load(self) -> Settings:
        """Read the settings. Raises a `SettingsError` if they are invalid."""
        return load_settings(self.path, os.environ | self.options)

    def to_json(self) -> dict[str, Any]:
        """The source for another process."""
        return {"path": None if self.path is None else str(self.path), "options": dict(self.options)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ConfigurationSource":
        """The source that another process sent."""
        return cls(None if content["path"] is None else Path(content["path"]), content["options"])
