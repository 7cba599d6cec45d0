"""Long-term memory as one object, for asynchronous code."""

import inspect
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

from ...errors import InvalidValueError
from ...service_client import is_service_url
from ...sql.columns import check_id
from ..database.access import MemoryDatabase
from ..operations.conversations import GetConversation, GetConversationOutline
from ..operations.description import Operation, result_of
from ..operations.entries import ConfirmEntry, DeleteEntry, GetEntry, GetHistory, RejectEntry
from ..operations.lists import (
    FindConversations,
    ListConversations,
    ListEntries,
    ListEntriesOf,
    ListMemories,
    ListNewestRuns,
    ListRuns,
    ListUsers,
)
from ..operations.memories import GetMemory, GetMemoryById, GetMemoryOutline
from ..operations.runs import GetRun, RetryRun
from ..operations.search import (
    Recall,
    SearchConversations,
    SearchConversationsOfUsers,
    SearchMemories,
    SearchMemoriesOfUsers,
)
from ..pipeline.stages import Extractor
from ..pipeline.token_meter import TokenMeter
from ..search.embedders import Embedder
from ..search.embedders.local import local_embedder
from .conversation_reader import ConversationReader
from .conversation_writer import ConversationWriter
from .data_rights import DataRights
from .entries import EntryRepository
from .entry_review import EntryReview
from .memories import MemoryRepository
from .monitor import StoreMonitor
from .pages import PageReader
from .parts import StoreResources, TenantParts
from .runs import LearningProgress, RunRepository

if TYPE_CHECKING:
    from ..pipeline.runner import RunOptions

P = ParamSpec("P")
T = TypeVar("T")
PartT = TypeVar("PartT")
RequestT = TypeVar("RequestT", bound=Operation[Any])
Method: TypeAlias = Callable[Concatenate["MemoryStore", P], Coroutine[Any, Any, T]]
Perform: TypeAlias = Callable[[RequestT], Coroutine[Any, Any, T]]

_DEFAULT_FILE = "recollect.db"


class _ForwardTo(Generic[PartT]):
    """Derives methods of the store from those of a part: same name, signature and docstring.

    A call goes to the part that the store has, which may be a remote one.
    """

    def __init__(self, part_of: Callable[[TenantParts], PartT]) -> None:
        self._part_of = part_of

    def __call__(self, method: Callable[Concatenate[PartT, P], Coroutine[Any, Any, T]]) -> Method[P, T]:
        part_of, name = self._part_of, method.__name__

        async def call(store: "MemoryStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
            found: T = await getattr(part_of(store._parts), name)(*args, **kwargs)
            return found

        return _named(call, name, method.__doc__, inspect.signature(method))


def _named(call: Method[P, T], name: str, doc: str | None, signature: inspect.Signature) -> Method[P, T]:
    """The method with what tools show of it. It looks as if it were written in the class."""
    call.__doc__, call.__name__, call.__qualname__ = doc, name, f"MemoryStore.{name}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


_PERFORMED_BY: dict[type[Operation[Any]], Callable[[TenantParts], Perform[Any, Any]]] = {}


def _operation(
    described: Callable[P, RequestT], performed_by: Callable[[TenantParts], Perform[RequestT, T]]
) -> Method[P, T]:
    """The method for an operation: it takes the arguments that the operation describes."""
    assert isinstance(described, type)
    _PERFORMED_BY[described] = performed_by

    async def call(store: "MemoryStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = await store.perform(described(*args, **kwargs))
        return found

    name = re.sub(r"(?<!^)(?=[A-Z])", "_", described.__name__).lower()
    return _named(call, name, described.__doc__, _signature_of(described))


def _signature_of(described: type[Operation[Any]]) -> inspect.Signature:
    """The signature of the method for an operation."""
    types = get_type_hints(described)
    store = inspect.Parameter("store", inspect.Parameter.POSITIONAL_ONLY)
    arguments = [
        each.replace(annotation=types[name]) for name, each in inspect.signature(described).parameters.items()
    ]
    return inspect.Signature([store, *arguments], return_annotation=result_of(described))


_reader = _ForwardTo(lambda parts: parts.reader)
_writer = _ForwardTo(lambda parts: parts.writer)
_memories = _ForwardTo(lambda parts: parts.memories)
_entries = _ForwardTo(lambda parts: parts.entries)
_review = _ForwardTo(lambda parts: parts.review)
_pages = _ForwardTo(lambda parts: parts.pages)
_rights = _ForwardTo(lambda parts: parts.rights)
_runs = _ForwardTo(lambda parts: parts.runs)
_progress = _ForwardTo(lambda parts: parts.progress)


class MemoryStore:
    """Records conversations, learns from them, and says what is known about a user, and why.

    Give it a path, `sqlite:///path`, `:memory:`, or the URL of a PostgreSQL database. The default is
    `RECOLLECT_URL`, or else `recollect.db` in the working folder.

    `workers` learn in a thread of this process; with 0, other processes on the same database learn. Without
    an `extractor`, learning follows rules and needs no model. The store does not close an `extractor` that it
    is given. Search matches words and, with an `embedder`, meaning. The local embedder needs no key and no
    download; `None` turns it off. A `meter` is consulted before each run, and informed of the tokens spent.

    Secrets such as passwords, keys and card numbers are masked in entries. `mask_secrets_in_messages` masks
    them in recorded messages, too: the original words are not stored.

    `on_work` is called when there is something to learn, so that a store without workers can wake those of
    another process. They also look at the queue every second.

    A store sees only the data of its `tenant`. A store for `all_tenants` gives a view of each tenant by
    `for_tenant`. Its workers do the work of all tenants, and `coverage`, `drain` and `embed_pending`
    cover all of them.
    """

    def __init__(
        self,
        url_or_path: str | Path | None = None,
        *,
        extractor: Extractor | None = None,
        embedder: Embedder | Literal["local"] | None = "local",
        workers: int = 4,
        options: "RunOptions | None" = None,
        tenant: str = "default",
        all_tenants: bool = False,
        meter: TokenMeter | None = None,
        mask_secrets_in_messages: bool = False,
        on_work: Callable[[], object] | None = None,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
            raise InvalidValueError(f"workers must be a whole number from 0 on, not {workers!r}")
        check_id("tenant", tenant)
        if is_service_url(url_or_path):
            raise InvalidValueError(
                "a service is opened by RemoteMemoryStore(url, key=…), not by MemoryStore"
            )
        database = MemoryDatabase(
            default_url() if url_or_path is None else url_or_path,
            create_tables=create_tables,
            engine_kwargs=engine_kwargs,
        )
        shared = StoreResources(
            database,
            local_embedder() if embedder == "local" else embedder,
            extractor,
            tenant=None if all_tenants else tenant,
            default_tenant=tenant,
            workers=workers,
            options=options,
            meter=meter,
            mask_secrets_in_messages=mask_secrets_in_messages,
            on_work=on_work,
        )
        self._bind(shared, TenantParts(shared, tenant, shared.tenant))

    def _bind(self, shared: StoreResources, parts: TenantParts) -> None:
        self._shared = shared
        self._parts = parts
        self._database = shared.database

    async def perform(self, request: Operation[T]) -> T:
        """The result of an operation as a value: `SearchMemories(…)` is the value of `search_memories(…)`."""
        found: T = await _PERFORMED_BY[type(request)](self._parts)(request)
        return found

    @property
    def writer(self) -> ConversationWriter:
        """Writes conversations, also as steps of larger transactions."""
        return self._parts.writer

    record_conversation = _writer(ConversationWriter.record_conversation)
    open_conversation = _writer(ConversationWriter.open_conversation)
    append_messages = _writer(ConversationWriter.append_messages)
    close_conversation = _writer(ConversationWriter.close_conversation)
    get_conversation = _operation(GetConversation, lambda parts: parts.reader.get_conversation)
    get_conversation_outline = _operation(
        GetConversationOutline, lambda parts: parts.reader.get_conversation_outline
    )
    list_conversations = _operation(ListConversations, lambda parts: parts.reader.list_conversations)
    find_conversations = _operation(FindConversations, lambda parts: parts.reader.find_conversations)
    list_messages = _reader(ConversationReader.list_messages)
    get_conversation_settings = _writer(ConversationWriter.get_conversation_settings)
    change_conversation_settings = _writer(ConversationWriter.change_conversation_settings)

    get_memory = _operation(GetMemory, lambda parts: parts.memories.get_memory)
    get_memory_by_id = _operation(GetMemoryById, lambda parts: parts.memories.get_memory_by_id)
    get_memory_outline = _operation(GetMemoryOutline, lambda parts: parts.memories.get_memory_outline)
    list_memories = _operation(ListMemories, lambda parts: parts.memories.list_memories)
    list_users = _operation(ListUsers, lambda parts: parts.memories.list_users)
    save_memory = _memories(MemoryRepository.save_memory)

    page = _pages(PageReader.page)
    page_history = _pages(PageReader.page_history)

    list_entries = _operation(ListEntries, lambda parts: parts.entries.list_entries)
    list_entries_of = _operation(ListEntriesOf, lambda parts: parts.entries.list_entries_of)
    get_entry = _operation(GetEntry, lambda parts: parts.entries.get_entry)
    get_history = _operation(GetHistory, lambda parts: parts.entries.get_history)
    add_entry = _entries(EntryRepository.add_entry)
    add_entry_unless_known = _entries(EntryRepository.add_entry_unless_known)
    edit_entry = _entries(EntryRepository.edit_entry)
    delete_entry = _operation(DeleteEntry, lambda parts: parts.entries.delete_entry)
    confirm_entry = _operation(ConfirmEntry, lambda parts: parts.review.confirm_entry)
    reject_entry = _operation(RejectEntry, lambda parts: parts.review.reject_entry)
    purge_expired_entries = _review(EntryReview.purge_expired_entries)

    search_memories = _operation(SearchMemories, lambda parts: parts.searcher.search_memories)
    search_conversations = _operation(SearchConversations, lambda parts: parts.searcher.search_conversations)
    search_memories_of_users = _operation(
        SearchMemoriesOfUsers, lambda parts: parts.users_searcher.search_memories
    )
    search_conversations_of_users = _operation(
        SearchConversationsOfUsers, lambda parts: parts.users_searcher.search_conversations
    )
    recall = _operation(Recall, lambda parts: parts.searcher.recall)

    why = _rights(DataRights.why)
    export_user = _rights(DataRights.export_user)
    export_user_to = _rights(DataRights.export_user_to)
    import_user = _rights(DataRights.import_user)
    erase_user = _rights(DataRights.erase_user)
    erase_conversation = _rights(DataRights.erase_conversation)
    erase_conversations_before = _rights(DataRights.erase_conversations_before)
    erase_message = _rights(DataRights.erase_message)
    delete_memory = _rights(DataRights.delete_memory)
    receipt_subject = _rights(DataRights.receipt_subject)
    vacuum = _rights(DataRights.vacuum)

    get_run = _operation(GetRun, lambda parts: parts.runs.get_run)
    list_runs = _operation(ListRuns, lambda parts: parts.runs.list_runs)
    list_newest_runs = _operation(ListNewestRuns, lambda parts: parts.runs.list_newest_runs)
    spent_by_day = _runs(RunRepository.spent_by_day)
    list_runs_of = _runs(RunRepository.list_runs_of)
    retry_run = _operation(RetryRun, lambda parts: parts.runs.retry_run)

    coverage = _progress(LearningProgress.coverage)
    drain = _progress(LearningProgress.drain)
    wait_until_learned = _progress(LearningProgress.wait_until_learned)
    embed_pending = _progress(LearningProgress.embed_pending)

    def export_user_lines(
        self, user_id: str, *, agent_id: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Everything stored about a user, one record at a time: the lines that `export_user_to` writes.

        The first record names the user. Each further one has the `kind` and the `data` of one thing.
        """
        return self._parts.rights.export_user_lines(user_id, agent_id=agent_id)

    def export_tenant_lines(self, *, agent_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Everything of the tenant, or of one of its agents, one record at a time, in constant memory.

        The lines have the same form as those of a user. `recollect import jsonl` reads them.
        """
        return self._parts.rights.export_tenant_lines(agent_id=agent_id)

    @property
    def tenant(self) -> str:
        """The tenant whose data this store sees."""
        return self._parts.tenant

    @property
    def memory_database(self) -> MemoryDatabase:
        """The tables of long-term memory, of all tenants."""
        return self._database

    @property
    def masks_messages(self) -> bool:
        """Whether secrets are masked in recorded messages."""
        return self._shared.mask_secrets_in_messages

    @property
    def monitor(self) -> StoreMonitor:
        """The state of the store for metrics and health checks, over all tenants."""
        return StoreMonitor(self._shared.database, self._shared.backfill)

    def for_tenant(self, tenant: str) -> "MemoryStore":
        """A view of another tenant's data through the same database, caches and workers.

        It is cheap to make, and closing it closes nothing. The store must have been made with
        `all_tenants=True`, or this is a `ValueError`.
        """
        if self._shared.tenant is not None:
            raise InvalidValueError("for_tenant needs a store that was made with all_tenants=True")
        return _TenantView(self._shared, check_id("tenant", tenant))

    def start(self) -> None:
        """Start to learn from pending conversations, as recording one also does. Twice is harmless."""
        self._shared.start()

    @property
    def is_learning(self) -> bool:
        """Whether the workers run; true also for a store without workers, where other processes learn."""
        return self._shared.is_learning

    async def aclose(self) -> None:
        """Stop the workers and close the database. Pending work continues when a store is opened again."""
        await self._shared.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


class _TenantView(MemoryStore):
    """One tenant's view of a store. The store owns the resources, so closing the view closes nothing."""

    def __init__(self, shared: StoreResources, tenant: str) -> None:
        self._bind(shared, TenantParts(shared, tenant, tenant))

    async def aclose(self) -> None:
        """Do nothing: the store closes its resources."""


def default_url() -> str:
    """The URL or path of the memory database if none is given: `RECOLLECT_URL`, or a file."""
    return os.environ.get("RECOLLECT_URL") or _DEFAULT_FILE
