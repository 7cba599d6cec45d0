"""Which session items are copies of which messages.

A provider that mirrors a conversation into a session stores the id of the message with each item it adds.
Erasing a message looks its copies up here. A row outlives its item: the event of a removed item is still
found by it. Item ids are never used twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...sql.scripts import Script, Statement, insert
from .dialect import Dialect
from .schema import CONVERSATIONS, MESSAGE_ITEMS

_READ = f"SELECT items_table, item_id, message_id FROM {MESSAGE_ITEMS.name} WHERE conversation_id = ?1"
_DELETE = f"DELETE FROM {MESSAGE_ITEMS.name} WHERE conversation_id = ?1 AND message_id = ?2"


@dataclass(frozen=True)
class ItemLinks:
    """Links the items of a session to the messages of its conversation, in the session's transactions.

    Lock order: conversation first, then session. An erasure holds the conversation while it waits for the
    session, so `share_conversation` comes before the session is locked, and `add` after it.
    """

    dialect: Dialect
    conversation_id: str
    items_table: str

    def share_conversation(self) -> Script[str | None]:
        """Keep the conversation from being deleted until the transaction ends; returns its tenant.

        Returns `None` if the conversation does not exist.
        """
        sql = f"SELECT tenant FROM {CONVERSATIONS.name} WHERE conversation_id = ?1{self.dialect.share}"
        rows = yield Statement(sql, (self.conversation_id,))
        return str(rows[0][0]) if rows else None

    def add(self, tenant: str, message_ids: Mapping[int, str]) -> Iterator[Statement]:
        """The changes that store which message each item is a copy of, by the ids of the items."""
        own = {
            "conversation_id": self.conversation_id,
            "tenant": tenant,
            "items_table": self.items_table,
        }
        rows = [{**own, "item_id": item, "message_id": message} for item, message in message_ids.items()]
        return insert(MESSAGE_ITEMS, rows, or_nothing=True)


def read_links(conversation_id: str) -> Script[dict[str, dict[int, str]]]:
    """The ids of the messages of a conversation, by the table and the id of the item."""
    links: dict[str, dict[int, str]] = {}
    for items_table, item_id, message_id in (yield Statement(_READ, (conversation_id,))):
        links.setdefault(items_table, {})[item_id] = message_id
    return links


def delete_links(conversation_id: str, message_id: str | None) -> Script[None]:
    """Delete the links of an erased message."""
    yield Statement(_DELETE, (conversation_id, message_id))
