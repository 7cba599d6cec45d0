"""Moving in and out: imports from other systems, exports, and copies between databases."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..memory.store import MemoryStore
    from .records import ImportReport

_AGENT = "assistant"


async def import_history(
    store: "MemoryStore",
    kind: str,
    source: str,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    learn: bool | None = None,
) -> "ImportReport":
    """Import a source of another system into a store, as `recollect import KIND SOURCE` does.

    `user_id` is the user of sources that name none. `agent_id` overrides the agent that the source names.
    With `learn`, workers learn from the conversations, with their original times, while no live conversation
    waits; by default they do so for chatgpt, claude and jsonl. Raises `ImportFormatError` if the source as a
    whole cannot be read. What else was lost is in the report.
    """
    from .importer import Importer
    from .kinds import ReadOptions, kind_named

    found = kind_named(kind)
    options = ReadOptions(store.tenant, agent_id, user_id)
    importer = Importer(
        store,
        agent_id=agent_id or _AGENT,
        user_id=user_id,
        learn=found.learns if learn is None else learn,
    )
    return await importer.run(found.read(source, options))
