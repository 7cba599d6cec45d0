"""Long-term memory for synchronous code: the methods of `MemoryStore`, without `await`."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from .background import BackgroundLoop
from .store import MemoryStore

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[MemoryStore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["ConversationManager", P], T]:
    """A method that runs the method of the store and waits for its result."""

    @wraps(method)
    def call(manager: "ConversationManager", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return manager._loop.run(method(manager.store, *args, **kwargs))

    return call


class ConversationManager:
    """Records conversations and reads what was learned from them, without `await`.

    It takes the arguments of `MemoryStore` and has its methods. They also work inside a running event loop,
    which they block; asynchronous code should use `MemoryStore`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.store = MemoryStore(*args, **options)
        self._loop = BackgroundLoop("recollect-memory")

    perform = _blocking(MemoryStore.perform)

    record_conversation = _blocking(MemoryStore.record_conversation)
    open_conversation = _blocking(MemoryStore.open_conversation)
    append_messages = _blocking(MemoryStore.append_messages)
    close_conversation = _blocking(MemoryStore.close_conversation)
    get_conversation = _blocking(MemoryStore.get_conversation)
    get_conversation_outline = _blocking(MemoryStore.get_conversation_outline)
    list_conversations = _blocking(MemoryStore.list_conversations)
    find_conversations = _blocking(MemoryStore.find_conversations)
    list_messages = _blocking(MemoryStore.list_messages)
    get_conversation_settings = _blocking(MemoryStore.get_conversation_settings)
    change_conversation_settings = _blocking(MemoryStore.change_conversation_settings)

    get_memory = _blocking(MemoryStore.get_memory)
    get_memory_by_id = _blocking(MemoryStore.get_memory_by_id)
    get_memory_outline = _blocking(MemoryStore.get_memory_outline)
    list_memories = _blocking(MemoryStore.list_memories)
    list_users = _blocking(MemoryStore.list_users)
    save_memory = _blocking(MemoryStore.save_memory)

    page = _blocking(MemoryStore.page)
    page_history = _blocking(MemoryStore.page_history)

    list_entries = _blocking(MemoryStore.list_entries)
    list_entries_of = _blocking(MemoryStore.list_entries_of)
    get_entry = _blocking(MemoryStore.get_entry)
    get_history = _blocking(MemoryStore.get_history)
    add_entry = _blocking(MemoryStore.add_entry)
    add_entry_unless_known = _blocking(MemoryStore.add_entry_unless_known)
    edit_entry = _blocking(MemoryStore.edit_entry)
    delete_entry = _blocking(MemoryStore.delete_entry)
    confirm_entry = _blocking(MemoryStore.confirm_entry)
    reject_entry = _blocking(MemoryStore.reject_entry)
    purge_expired_entries = _blocking(MemoryStore.purge_expired_entries)

    search_memories = _blocking(MemoryStore.search_memories)
    search_conversations = _blocking(MemoryStore.search_conversations)
    search_memories_of_users = _blocking(MemoryStore.search_memories_of_users)
    search_conversations_of_users = _blocking(MemoryStore.search_conversations_of_users)
    recall = _blocking(MemoryStore.recall)
    embed_pending = _blocking(MemoryStore.embed_pending)

    why = _blocking(MemoryStore.why)
    export_user = _blocking(MemoryStore.export_user)
    export_user_to = _blocking(MemoryStore.export_user_to)
    import_user = _blocking(MemoryStore.import_user)
    erase_user = _blocking(MemoryStore.erase_user)
    erase_conversation = _blocking(MemoryStore.erase_conversation)
    erase_conversations_before = _blocking(MemoryStore.erase_conversations_before)
    erase_message = _blocking(MemoryStore.erase_message)
    delete_memory = _blocking(MemoryStore.delete_memory)
    receipt_subject = _blocking(MemoryStore.receipt_subject)
    vacuum = _blocking(MemoryStore.vacuum)

    get_run = _blocking(MemoryStore.get_run)
    list_runs = _blocking(MemoryStore.list_runs)
    list_newest_runs = _blocking(MemoryStore.list_newest_runs)
    spent_by_day = _blocking(MemoryStore.spent_by_day)
    list_runs_of = _blocking(MemoryStore.list_runs_of)
    retry_run = _blocking(MemoryStore.retry_run)
    coverage = _blocking(MemoryStore.coverage)
    drain = _blocking(MemoryStore.drain)
    wait_until_learned = _blocking(MemoryStore.wait_until_learned)

    def start(self) -> None:
        """Start to learn from pending conversations. Recording one does so, too. Twice is harmless."""
        self.store.start()

    def close(self) -> None:
        """Stop learning and close the database. Pending runs go on when it is opened again."""
        self._loop.run(self.store.aclose())
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
