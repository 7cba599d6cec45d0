"""Memory for any client of the Model Context Protocol: remember, recall, forget, why, list and page."""

from importlib import import_module
from typing import Any

from ..extras import require_extra

_MODULES = {"build_server": ".server", "mcp_app": ".http_app"}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use: the `mcp` package is slow to import."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("mcp", "mcp", f"{__name__}.{name}")
    return getattr(import_module(_MODULES[name], __name__), name)
