"""The checkpointer of LangGraph on the databases of Recollect."""

import random
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ...errors import InvalidValueError
from ...memory.store import MemoryStore
from ...sql.database import Database
from ..blocking import run_blocking
from .delta import read_history
from .known import KnownCheckpoints
from .loading import Loader
from .place import CheckpointPlace, check_thread_id, checkpoint_id_of, configurable_of, place_of, user_of
from .pruning import copy_thread, delete_runs, delete_threads, keep_newest
from .reading import Search
from .recording import MESSAGES, ThreadRecorder
from .saving import Saver
from .tables import CheckpointTables

T = TypeVar("T")

_PAGE = 20  # checkpoints that `list` reads at once


class Checkpointer(BaseCheckpointSaver[str]):
    """Stores the checkpoints of LangGraph in SQLite or PostgreSQL, and of each step only what changed.

    `url_or_path` is the path of a file, `:memory:`, or the URL of a database, as for every other store.
    `allow` names classes of the state that may be created when a checkpoint is read: LangGraph's own types
    and messages always may. A `serde` of your own replaces this rule. All methods have an asynchronous form;
    one object may be used from several threads and event loops.

    With `learn=True`, what people and answers say in threads that name a `user_id` is recorded as it is
    stored, and learned as the memory of `agent_id`: in `memory`, or else in the same database.
    """

    def __init__(
        self,
        url_or_path: str | Path | Database,
        *,
        serde: SerializerProtocol | None = None,
        allow: Collection[type | tuple[str, ...]] = (),
        learn: bool = False,
        memory: MemoryStore | None = None,
        agent_id: str = "assistant",
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if serde is not None and allow:
            raise InvalidValueError("allow has no effect with a serde of your own: give one of them")
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=list(allow) or None))
        self._tables = CheckpointTables(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._known = KnownCheckpoints()
        self._own_memory: MemoryStore | None = None
        if memory is None and learn:
            self._own_memory = memory = _open_memory(url_or_path, create_tables, engine_kwargs)
        self._recorder = ThreadRecorder(memory, agent_id) if learn and memory is not None else None

    @property
    def memory(self) -> MemoryStore | None:
        """The memory that learns from the threads; `None` without `learn`."""
        return None if self._recorder is None else self._recorder.store

    # --- asynchronous ---

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, with the values of the channels that have a new version."""
        complete = get_checkpoint_metadata(config, metadata)
        await Saver(self._tables, self.serde, self._known).put(config, checkpoint, complete, new_versions)
        place = place_of(config)
        await self._learn(config, place, checkpoint, new_versions)
        return place.config(checkpoint["id"])

    async def _learn(
        self,
        config: RunnableConfig,
        place: CheckpointPlace,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
    ) -> None:
        """Record the messages of the graph itself. Subgraphs have their own, which nobody reads."""
        if self._recorder is None or place.namespace != "" or MESSAGES not in new_versions:
            return
        user_id, messages = user_of(config), checkpoint["channel_values"].get(MESSAGES)
        if user_id is not None and isinstance(messages, list):
            await self._recorder.record_quietly(place.thread_id, user_id, messages)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, until the checkpoint of the whole step is stored."""
        await Saver(self._tables, self.serde, self._known).put_writes(config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, or the newest one of the thread. `None` if it does not exist or was pruned."""
        return await self._loader().read(place_of(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name that LangGraph gives it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the checkpoints that match, the newest first. A filter on a missing field matches none."""
        search: Search | None = _search(config, before)
        while search is not None and (limit is None or limit > 0):
            page, search = await self._loader().read_page(search, filter or {}, _page_size(limit))
            for found in page:
                yield found
            limit = None if limit is None else limit - len(page)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its checkpoints. A thread that does not exist is deleted already."""
        await self._tables.write(partial(delete_threads, [check_thread_id(thread_id)]))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs. Those that a `DeltaChannel` of another checkpoint needs stay."""
        if run_ids:
            await self._tables.write(partial(delete_runs, self.serde, [str(run_id) for run_id in run_ids]))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to a new id. Raises `ConflictError` if the target exists already."""
        source, target = check_thread_id(source_thread_id), check_thread_id(target_thread_id)
        await self._tables.write(partial(copy_thread, source, target))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace (`keep_latest`), or none (`delete`).

        The newest one stays complete: all that it needs is kept, including ancestors of a `DeltaChannel`.
        """
        ids = [check_thread_id(thread_id) for thread_id in thread_ids]
        if strategy == "delete":
            await self._tables.write(partial(delete_threads, ids))
        elif strategy == "keep_latest":
            for thread_id in ids:
                await self._tables.write(partial(keep_newest, self.serde, thread_id))
        else:
            raise InvalidValueError(f"strategy must be 'keep_latest' or 'delete', not {strategy!r}")

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read the writes of the ancestors since the last snapshot, and the snapshot, of delta channels."""
        return await read_history(self._loader(), place_of(config), list(channels)) if channels else {}

    def _loader(self) -> Loader:
        return Loader(self._tables, self.serde, self._known)

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        if self._own_memory is not None:
            await self._own_memory.aclose()
        await self._tables.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    # --- synchronous ---

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The same as `aput`."""
        return run_blocking(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The same as `aput_writes`."""
        run_blocking(self.aput_writes(config, writes, task_id, task_path))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The same as `aget_tuple`."""
        return run_blocking(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name that LangGraph gives it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The same as `alist`."""
        found = self.alist(config, filter=filter, before=before, limit=limit)
        with suppress(StopAsyncIteration):
            while True:
                yield run_blocking(_next(found))

    def delete_thread(self, thread_id: str) -> None:
        """The same as `adelete_thread`."""
        run_blocking(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """The same as `adelete_for_runs`."""
        run_blocking(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The same as `acopy_thread`."""
        run_blocking(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """The same as `aprune`."""
        run_blocking(self.aprune(thread_ids, strategy=strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The same as `aget_delta_channel_history`."""
        return run_blocking(self.aget_delta_channel_history(config=config, channels=channels))

    def close(self) -> None:
        """Release the database. May be called more than once."""
        if self._own_memory is not None:
            run_blocking(self._own_memory.aclose())
        self._tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- versions ---

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:  # noqa: ARG002
        """The version after this one. Its random end keeps the versions of two branches apart."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"


def _open_memory(
    url_or_path: str | Path | Database, create_tables: bool, engine_kwargs: Mapping[str, Any] | None
) -> MemoryStore:
    if isinstance(url_or_path, Database):
        raise InvalidValueError("learn needs a memory if the checkpointer is given an open database")
    return MemoryStore(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)


async def _next(found: AsyncIterator[T]) -> T:
    return await anext(found)


def _page_size(limit: int | None) -> int:
    return _PAGE if limit is None else min(limit, _PAGE)


def _search(config: RunnableConfig | None, before: RunnableConfig | None) -> Search:
    earlier = checkpoint_id_of(before) if before else None
    if config is None:
        return Search(before=earlier)
    place: CheckpointPlace = place_of(config)
    namespace = None if configurable_of(config).get("checkpoint_ns") is None else place.namespace
    return Search(place.thread_id, namespace, place.checkpoint_id, earlier)
