"""The synchronous face is the asynchronous one."""

import inspect

from recollect.memory.manager import ConversationManager
from recollect.memory.store import MemoryStore


def test_the_manager_has_every_method_of_the_store() -> None:
    asynchronous = {
        name
        for name, method in inspect.getmembers(MemoryStore, inspect.iscoroutinefunction)
        if not name.startswith("_") and name != "aclose"
    }
    missing = {name for name in asynchronous if not callable(getattr(ConversationManager, name, None))}
    assert missing == set()
    assert not any(inspect.iscoroutinefunction(getattr(ConversationManager, name)) for name in asynchronous)


def test_signatures_are_those_of_the_store() -> None:
    for name in ("record_conversation", "get_memory", "drain"):
        ours = inspect.signature(getattr(ConversationManager, name))
        assert ours == inspect.signature(getattr(MemoryStore, name))
