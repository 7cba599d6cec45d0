"""Entries of long-term memory as items of a store, to be read in the namespace `("memories", user)`."""

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import Item, SearchItem, SearchOp

from ....memory.entry import Entry
from ....memory.lifetime import is_expired
from ....memory.rights.langgraph_data import label_of_user
from ....memory.store import MemoryStore
from ....memory.times import now
from .filters import check_filter, matches
from .namespaces import Namespace, user_of_label

ROOT = "memories"
_MOST = 1000  # entries that a search with a filter looks at
_USERS_AT_ONCE = 500


class MemoryNamespace:
    """The entries of one agent and all its users, read-only."""

    def __init__(self, memory: MemoryStore, agent_id: str) -> None:
        self._memory = memory
        self._agent_id = agent_id

    @staticmethod
    def has(namespace: Namespace) -> bool:
        """Whether a namespace is one of a user's entries."""
        return len(namespace) == 2 and namespace[0] == ROOT

    async def get(self, namespace: Namespace, key: str) -> Item | None:
        """An entry that is current, by its id. `None` if it is another user's."""
        entry = await self._memory.get_entry(key)
        memory = await self._memory.get_memory(self._agent_id, user_of_label(namespace[1]))
        if entry is None or memory is None or entry.retired_at is not None or is_expired(entry, now()):
            return None
        return _item(namespace, entry) if entry.memory_id == memory.memory_id else None

    async def search(self, op: SearchOp) -> list[SearchItem]:
        """The current entries that match: the best answers to a question, or all in their order."""
        namespace, user = op.namespace_prefix, user_of_label(op.namespace_prefix[1])
        wanted, end = check_filter(op.filter), op.offset + op.limit
        if op.query:
            most = _MOST if wanted else max(end, 1)
            hits = (await self._memory.search_memories(op.query, self._agent_id, user, limit=most)).hits
            found = [_search_item(namespace, hit.entry, hit.score) for hit in hits]
        else:
            entries = await self._memory.list_entries(self._agent_id, user)
            found = [_search_item(namespace, entry) for entry in entries]
        return [each for each in found if matches(each.value, wanted)][op.offset : end]

    async def list(self) -> list[Namespace]:
        """The namespaces of all users."""
        users, after = list[Namespace](), None
        while page := await self._memory.list_users(after=after, limit=_USERS_AT_ONCE):
            users += [(ROOT, label_of_user(user.user_id)) for user in page]
            after = page[-1].position
        return users


def value_of(entry: Entry) -> Mapping[str, Any]:
    """An entry as the value of an item, with its evidence."""
    return entry.to_dict()


def _item(namespace: Namespace, entry: Entry) -> Item:
    return Item(
        value=dict(value_of(entry)),
        key=entry.content_id,
        namespace=namespace,
        created_at=entry.learned_at,
        updated_at=entry.learned_at,
    )


def _search_item(namespace: Namespace, entry: Entry, score: float | None = None) -> SearchItem:
    return SearchItem(
        namespace=namespace,
        key=entry.content_id,
        value=dict(value_of(entry)),
        created_at=entry.learned_at,
        updated_at=entry.learned_at,
        score=score,
    )
