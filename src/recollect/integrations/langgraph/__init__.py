"""Checkpoints and a store for LangGraph, on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING, Any

from ...extras import require_extra

if TYPE_CHECKING:
    from .checkpointer import Checkpointer as Checkpointer
    from .learning import learn_from_thread as learn_from_thread
    from .migration import CopyReport as CopyReport
    from .migration import copy_threads as copy_threads
    from .store.copies import copy_items as copy_items
    from .store.copies import import_items as import_items
    from .store.store import Store as Store

_MODULES = {
    "Checkpointer": "checkpointer",
    "CopyReport": "migration",
    "Store": "store.store",
    "copy_items": "store.copies",
    "copy_threads": "migration",
    "import_items": "store.copies",
    "learn_from_thread": "learning",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is used first."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("langgraph", "langgraph.checkpoint.base", f"recollect.integrations.langgraph.{name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
