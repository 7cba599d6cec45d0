"""The rights of people over their data: explanation, export, import and erasure."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from ...errors import InvalidValueError
from ...private_files import replace_privately
from ...sessions.settings import check_limit
from ...sql.columns import check_id, time_to_column
from ...sql.scripts import MakeScript, Row
from ..database import conversations
from ..database.access import MemoryDatabase, column_now
from ..database.removal import ConcurrentChangeError
from ..prompting import forget_prompts
from ..rights import erasure
from ..rights.erasure import ErasureRequest, ErasureResult
from ..rights.exports import CONTINUED, FORMAT, KINDS, export_records, export_tenant
from ..rights.imports import parse_export, write_export
from ..rights.ownership import DataOwner
from ..rights.personal_data import clear_deleted, vacuum
from ..rights.receipt import Receipt, check_receipt_key, receipt_key, subject_of
from ..rights.why import Why, explain
from ..search.embedders import CachedEmbedder, Embedder
from ..texts import terms
from ..texts.remembered import forget_texts
from ..times import now, read_time
from .corpus_cache import CorpusCache
from .pages import PageCache

_TRIES = 100  # of an erasure that concurrent writers overtake
_LONGEST_PAUSE = 0.05  # seconds between two tries


class DataRights:
    """Explains, exports, imports and erases the data of one tenant.

    `on_work` is called when a run may have become due. The caches, `corpora`, `pages` and that of the
    `embedder`, are cleared of erased texts.
    """

    def __init__(
        self,
        database: MemoryDatabase,
        tenant: str,
        corpora: CorpusCache,
        pages: PageCache,
        embedder: Embedder | None,
        on_work: Callable[[], None],
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._corpora = corpora
        self._pages = pages
        self._embedder = embedder
        self._on_work = on_work

    async def why(self, content_id: str) -> Why | None:
        """Why an entry is known: the messages that say so, and its history; `None` if there is no entry."""
        return await explain(self._database, self._tenant, check_id("content_id", content_id))

    async def export_user(self, user_id: str, *, agent_id: str | None = None) -> dict[str, Any]:
        """Everything stored about a user as JSON, with all agents or with one."""
        lines = self.export_user_lines(user_id, agent_id=agent_id)
        exported = {**await anext(lines), **{kind: [] for kind in KINDS}}
        async for line in lines:
            _collect(exported, line["kind"], line["data"])
        return exported

    async def export_user_lines(
        self, user_id: str, *, agent_id: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Everything stored about a user, one record at a time: the lines that `export_user_to` writes.

        The first record names the user. Each further one has the `kind` and the `data` of one thing.
        """
        whose = self._whose(user_id, agent_id)
        yield {"format": FORMAT, "user_id": user_id, "agent_id": agent_id}
        async for record in export_records(self._database, whose):
            yield {"kind": record.kind, "data": record.data}

    async def export_tenant_lines(self, *, agent_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Everything of the tenant, or of one of its agents, one record at a time, in constant memory."""
        if agent_id is not None:
            check_id("agent_id", agent_id)
        yield {"format": FORMAT, "user_id": None, "agent_id": agent_id}
        async for record in export_tenant(self._database, self._tenant, agent_id):
            yield {"kind": record.kind, "data": record.data}

    async def export_user_to(
        self, path_or_file: str | Path | IO[str], user_id: str, *, agent_id: str | None = None
    ) -> int:
        """Write everything stored about a user as JSON Lines, a page at a time; returns the number of lines.

        The first line names the user. Each further line has the `kind` and the `data` of one thing. A file
        appears complete or not at all, with mode 0600.
        """
        if not isinstance(path_or_file, str | Path):
            return await self._write_lines(path_or_file, user_id, agent_id)
        with (
            replace_privately(path_or_file) as temporary,
            temporary.open("w", encoding="utf-8") as file,
        ):
            return await self._write_lines(file, user_id, agent_id)

    async def import_user(self, exported: Mapping[str, Any]) -> dict[str, int]:
        """Import memories, entries with evidence, conversations and runs; returns the number of each.

        Nothing is learned again. Either all of it is written or nothing. An `ImportFormatError` says what is
        wrong with the export. A `ConflictError` means that some of it is stored already.
        """
        reading = parse_export(exported, self._tenant, column_now())
        counts = await self._database.write(partial(write_export, self._database, reading))
        self._on_work()
        return counts

    async def erase_user(
        self, user_id: str, *, agent_id: str | None = None, key: bytes | str | None = None
    ) -> Receipt:
        """Erase everything stored about a user, with all agents or with one.

        This covers their memories, conversations and runs, and their sessions, events and summaries in this
        database. A run in progress loses its lease and writes nothing more. A SQLite file and its log hold
        none of the erased data afterwards. On PostgreSQL, call `vacuum`. The receipt says what remains where.
        """
        _check_key(key)
        whose = self._whose(user_id, agent_id)
        erased = await self._write(partial(erasure.erase_user, self._database, whose))
        return await self._receipt(erased, key)

    async def erase_conversation(self, conversation_id: str, *, key: bytes | str | None = None) -> Receipt:
        """Erase a conversation and everything that was learned from it."""
        _check_key(key)
        part = ErasureRequest(self._tenant, check_id("conversation_id", conversation_id))
        return await self._erase(await self._erasure_of(part), key)

    async def erase_conversations_before(self, time: datetime | str, *, limit: int = 100) -> int:
        """Erase conversations without a message since a time, the oldest first; returns the number erased.

        At most `limit` conversations are erased, each as by `erase_conversation`. A conversation that gets a
        message meanwhile stays.
        """
        until = read_time("time", time)
        if until is None:
            raise InvalidValueError("time must be given")
        edge = time_to_column(until)
        page = (self._tenant, edge, check_limit(limit))
        found = await self._database.fetch(conversations.INACTIVE, page, list[Row])
        parts = [
            ErasureRequest(self._tenant, conversation_id, unless_since=edge) for (conversation_id,) in found
        ]
        results = [await self._write(await self._erasure_of(part)) for part in parts]
        if results:
            self._on_work()
            self._forget(results)
            await clear_deleted(self._database)
        return sum(result.counts.get("conversations", 0) for result in results)

    async def erase_message(
        self, conversation_id: str, message_id: str, *, key: bytes | str | None = None
    ) -> Receipt:
        """Erase a message and everything that was learned from it. Entries superseded by those come back."""
        _check_key(key)
        check_id("conversation_id", conversation_id)
        part = ErasureRequest(self._tenant, conversation_id, check_id("message_id", message_id))
        looked = await erasure.scan_for_quotes(self._database, part)
        erase = partial(erasure.erase_message, self._database, part, column_now(), looked)
        return await self._erase(erase, key)

    async def delete_memory(self, memory_id: str, *, key: bytes | str | None = None) -> Receipt:
        """Delete all entries of a memory, for good. Its conversations stay and are not learned from again."""
        _check_key(key)
        check_id("memory_id", memory_id)
        delete = partial(erasure.delete_memory, self._database, self._tenant, memory_id, column_now())
        return await self._erase(delete, key)

    async def vacuum(self, *, full: bool = False) -> None:
        """Remove erased data from the files of the database.

        SQLite rewrites its file. PostgreSQL frees the space for reuse. With `full`, it also rewrites the
        tables, which locks them meanwhile.
        """
        await vacuum(self._database, full)

    async def _erasure_of(self, part: ErasureRequest) -> MakeScript[ErasureResult]:
        looked = await erasure.scan_for_quotes(self._database, part)
        return partial(erasure.erase_conversation, self._database, part, column_now(), looked)

    async def _erase(self, erase: MakeScript[ErasureResult], key: bytes | str | None) -> Receipt:
        erased = await self._write(erase)
        self._on_work()  # the erasure may have interrupted a run, which is then due again
        return await self._receipt(erased, key)

    async def _write(self, erase: MakeScript[ErasureResult]) -> ErasureResult:
        """Run an erasure, again after a random pause for as long as a concurrent writer overtakes it."""
        for attempt in range(1, _TRIES):
            try:
                return await self._database.write(erase)
            except ConcurrentChangeError:
                await asyncio.sleep(random.uniform(0, min(0.002 * attempt, _LONGEST_PAUSE)))
        return await self._database.write(erase)

    async def receipt_subject(self, user_id: str, *, key: bytes | str | None = None) -> str:
        """The subject that the receipts of a user carry, to find out whose data a receipt is about."""
        _check_key(key)
        return subject_of(check_id("user_id", user_id), key or await self._receipt_key())

    async def _receipt_key(self) -> str:
        return await self._database.write(partial(receipt_key, self._tenant))

    async def _receipt(self, erased: ErasureResult, key: bytes | str | None) -> Receipt:
        """Remove the erased texts from the caches of this process and the log, then write the receipt."""
        self._forget([erased])
        subject = subject_of(erased.user_id, key or await self._receipt_key())
        return Receipt(now(), erased.counts, subject, await clear_deleted(self._database))

    def _forget(self, results: Sequence[ErasureResult]) -> None:
        for memory_id in {memory_id for erased in results for memory_id in erased.memory_ids}:
            self._corpora.forget(memory_id)
            self._pages.forget(memory_id)
        for user_id in {erased.user_id for erased in results}:
            forget_prompts(self._tenant, user_id)
        if isinstance(self._embedder, CachedEmbedder):
            self._embedder.clear()
        forget_texts()
        terms.stem.cache_clear()

    async def _write_lines(self, file: IO[str], user_id: str, agent_id: str | None) -> int:
        count = 0
        async for line in self.export_user_lines(user_id, agent_id=agent_id):
            file.write(json.dumps(line) + "\n")
            count += 1
        return count

    def _whose(self, user_id: str, agent_id: str | None) -> DataOwner:
        check_id("user_id", user_id)
        return DataOwner(self._tenant, user_id, None if agent_id is None else check_id("agent_id", agent_id))


def _collect(exported: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
    """Add a record to a document. A line that continues another is joined with it."""
    if kind not in CONTINUED:
        exported[kind].append(data)
    elif kind == "messages":
        conversation = exported["conversations"][-1]
        conversation["conversation_data"]["messages"] += data["messages"]
        conversation["next_index"] = data["next_index"]
    else:
        for name in ("items", "ids", "times", "structure"):
            exported["sessions"][-1].setdefault(name, []).extend(data.get(name, ()))


def _check_key(key: bytes | str | None) -> None:
    if key is not None:
        check_receipt_key(key)
