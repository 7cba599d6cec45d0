"""The last part of the demo: what was learned about the user, and what an agent is given for a question."""

from pathlib import Path

from ...items import Item
from ...memory.conversation import Conversation
from ...memory.entry import Entry
from ...memory.store import MemoryStore
from ...sessions.history import items_to_messages

_AGENT, _USER = "assistant", "ada"
_QUESTION = "What hobby did I take up?"
_PATIENCE = 60.0  # seconds
_ROLES = ("user", "assistant")


async def show_learned(path: Path, items: list[Item]) -> None:
    """Record the items of a session as a conversation, learn from it, and print the entries and a recall."""
    said = [
        {"role": message["role"], "content": message["content"]}
        for message in items_to_messages(items)
        if message["role"] in _ROLES and message["content"].strip()
    ]
    async with MemoryStore(path) as store:
        conversation = await store.record_conversation(_AGENT, _USER, said)
        await store.drain(_PATIENCE)
        entries = await store.list_entries(_AGENT, _USER)
        await store.embed_pending()
        recalled = await store.recall(_QUESTION, _AGENT, _USER)
    print("\nLearned about the user, by rules and without a model; each line with its evidence:")
    for entry in entries:
        print(f"  {entry.content_type:>7}  {entry.text}")
        for quote in _quotes(entry, conversation):
            print(f'           because they said: "{quote}"')
    print(f'\nAsked "{_QUESTION}", an agent is given these lines, each with the chance that it helps:')
    for line in recalled.lines:
        print(f"  {line.score:7.2f}  {line.text}")


def _quotes(entry: Entry, conversation: Conversation) -> list[str]:
    said = {message.message_id: message.content for message in conversation.messages}
    return [said[each.message_id] for each in entry.evidence if each.message_id in said]
