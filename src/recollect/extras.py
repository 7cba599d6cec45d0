"""Optional dependencies, asked for at the point of use."""

from importlib import import_module
from typing import Any

from .errors import MissingExtraError


def require_extra(extra: str, module: str, what: str) -> Any:
    """The module, or one clear error that names the extra which brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error
