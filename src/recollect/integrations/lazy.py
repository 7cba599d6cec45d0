"""Public names of an integration, imported when they are used first."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..extras import require_extra


def import_on_use(package: str, modules: Mapping[str, str], extra: str, needs: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are in these modules of it.

    Raises `MissingExtraError`, which names the `extra`, if the module that the framework `needs` is missing.
    """

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        require_extra(extra, needs, f"{package}.{name}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return import_name
