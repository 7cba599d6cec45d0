"""Checkpoints and a store for LangGraph, on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING

from ..lazy import import_on_use

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
__getattr__ = import_on_use(__name__, _MODULES, extra="langgraph", needs="langgraph.checkpoint.base")
