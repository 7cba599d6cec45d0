"""Memory for any client of the Model Context Protocol: remember, recall, forget, why and list."""

from importlib import import_module
from typing import Any

from ..extras import require_extra

_HOMES = {"build_server": ".server", "mcp_app": ".http_app"}


def __getattr__(name: str) -> Any:
    """What the package offers, loaded when it is first used: the protocol's own package is heavy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("mcp", "mcp", f"{__name__}.{name}")
    return getattr(import_module(_HOMES[name], __name__), name)
