"""Optional dependencies, asked for at the point of use."""

from importlib import import_module
from typing import Any

from .errors import MissingExtraError

DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5-5"
"""The current Sonnet as of 2026-11-16. Look at Anthropic's list of retired models before each release."""


def require_extra(extra: str, module: str, what: str) -> Any:
    """The module, or one clear error that names the extra which brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error
