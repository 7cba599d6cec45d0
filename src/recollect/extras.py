"""Optional dependencies, imported at the point of use."""

from importlib import import_module
from typing import Any

from .errors import MissingExtraError

DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5-5"
"""The current Sonnet as of 2026-11-16. Check Anthropic's list of retired models before each release."""


def require_extra(extra: str, module: str, what: str) -> Any:
    """Import a module of an optional dependency. Raise `MissingExtraError`, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error
