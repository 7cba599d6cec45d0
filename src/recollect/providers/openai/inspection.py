"""Looking at a chat: its branches, what it cost, what happened in it, and what a model would see."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

from ...errors import ConflictError
from ...items import Item
from ...items.shapes import PLACEHOLDER_IDS
from ...memory.conversation import Conversation
from ...memory.run import Days, Spent, SpentBy
from ...memory.times import tell_time
from ...sessions.advanced.scripts import MAIN
from ...sessions.advanced.usage import COUNTS
from ...sessions.events import ConversationEvent
from ...sessions.in_memory import InMemorySession
from ...strategies.configuration import resolve_memory_strategy
from ...strategies.reader import run_in_thread_if_long
from ...strategies.session import StrategySession
from ...strategies.values import Strategy
from ..errors import UnknownBranchError
from .active_turn import Parts
from .database.turns import Place
from .sessions import ChatSession, alone_on, items_to_add, made_from
from .turn_outcome import Settling

_EVERYTHING = 2**31 - 1  # items
_LONG = 200


class Looking:
    """What there is to see of a conversation that the caller may see, also where nobody has chatted in it.

    What is asked about the items of a conversation that was recorded, and not chatted in, is answered from
    its messages, which are read for that: it may be given without them.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settling = Settling(parts.sessions.store, parts.turns)

    async def branches_of(self, conversation: Conversation) -> list[dict[str, Any]]:
        """Each branch: `name, is_current, from_branch, from_turn, item_count, user_turn_count, created_at`.

        `from_branch` and `from_turn` are `None` for `main`.
        """
        async with self._session(conversation) as session:
            known, found = await session.known(), await session.list_branches()
        if not found:
            said = await self._parts.turns.count_said(conversation.conversation_id)
            return [_main_of(conversation, *said)]
        return [_branch(conversation, known, branch) for branch in found]

    async def create_branch(
        self, conversation: Conversation, from_turn: int, name: str | None = None
    ) -> dict[str, Any]:
        """Make a branch of all before a user turn of the current branch, make it current, and describe it.

        An unknown turn is a `ValueError`, a name that is taken a `ConflictError`.
        """
        async with self._alone(conversation) as session:
            await self._bring_up_to_date(session, conversation)
            if name is not None and name in await _names(session):
                raise ConflictError("there is already a branch of this name")
            made = await session.create_branch(from_turn, name)
        return await self._branch_named(conversation, made)

    async def switch_branch(self, conversation: Conversation, name: str) -> dict[str, Any]:
        """Make a branch current and describe it; one that is not there is an `UnknownBranchError`."""
        async with self._alone(conversation) as session:
            names = await _names(session)
            if name not in names:
                raise UnknownBranchError
            if names != {MAIN}:
                await session.switch_to_branch(name)
        return await self._branch_named(conversation, name)

    async def delete_branch(self, conversation: Conversation, name: str) -> bool:
        """Delete a branch; `False` if there is none. `main` and the current one are a `ConflictError`."""
        async with self._alone(conversation) as session:
            if name not in await _names(session):
                return False
            if name in (MAIN, await session.current_branch()):
                raise ConflictError("the main branch and the current one cannot be deleted")
            await session.delete_branch(name)
        return True

    async def usage_of(self, conversation: Conversation) -> dict[str, Any]:
        """What a conversation cost: `totals`, `by_turn` of the current branch, and its chat `turns`."""
        async with self._session(conversation) as session:
            totals = await session.get_session_usage()
            by_turn = cast(list[dict[str, Any]], await session.get_turn_usage())
        turns = await self._parts.turns.of_conversation(conversation.conversation_id)
        counts = {name: (totals or {}).get(name, 0) for name in COUNTS}
        return {"totals": counts, "by_turn": by_turn, "turns": [turn.to_dict() for turn in turns]}

    async def events_of(
        self, conversation: Conversation, after: int | None = None, limit: int = 100
    ) -> list[ConversationEvent]:
        """The first `limit` events after a sequence number, in order."""
        return await self._parts.events.read(conversation.conversation_id, after, limit)

    async def view_of(
        self, conversation: Conversation, memory_strategy: Mapping[str, Any] | None = None
    ) -> list[Item]:
        """The items that a model would see now, by the conversation's own strategy or by a given one.

        One that is given is tried out: nothing of it is kept, and its summaries are made without a model.
        """
        items = await self._view_of(conversation, memory_strategy)
        return [_without_placeholder_id(item) for item in items]

    async def _view_of(
        self, conversation: Conversation, memory_strategy: Mapping[str, Any] | None
    ) -> list[Item]:
        strategy = await self._strategy(conversation, memory_strategy)
        async with self._session(conversation) as session:
            waiting, _ = await self._waiting(session, conversation)
            if waiting or memory_strategy is not None:
                items = [*await session.get_items(_EVERYTHING), *waiting.values()]
                return await _view(items, conversation.conversation_id, strategy)
            async with self._parts.sessions.viewed(session, strategy) as viewed:
                return list(await viewed.get_items())

    async def spent_by_day(self, tenant: str, days: Days, by: SpentBy, limit: int) -> list[Spent]:
        """What the chats of a tenant have cost, by day and by model or agent, at most so many of them."""
        return await self._parts.turns.spent_by_day(tenant, days, by, limit)

    # --- how it is done ---

    @asynccontextmanager
    async def _session(self, conversation: Conversation) -> AsyncIterator[ChatSession]:
        place = await self._place(conversation)
        store = self._parts.sessions.store
        async with await store.open_for(conversation, place.tenant, place.session_id) as session:
            yield session

    @asynccontextmanager
    async def _alone(self, conversation: Conversation) -> AsyncIterator[ChatSession]:
        """A session on which no turn is running: its branch must not change under that."""
        options, store = self._parts.options, self._parts.sessions.store
        lock = alone_on(store, conversation.conversation_id, options.lock_seconds, options.lease_seconds)
        async with lock:
            # A turn that a dead process left is undone while it is known where it began.
            await self._settling.settle(conversation)
            async with self._session(conversation) as session:
                yield session

    async def _place(self, conversation: Conversation) -> Place:
        place = await self._parts.turns.place_of(conversation.conversation_id)
        if place is None:
            raise ConflictError("there is no conversation with this conversation_id")
        return place

    async def _strategy(self, conversation: Conversation, given: Mapping[str, Any] | None) -> Strategy | None:
        registry = self._parts.runtime.registry
        is_known = conversation.agent_id in registry.names()
        agents = registry.get(conversation.agent_id).memory_strategy_defaults if is_known else None
        return resolve_memory_strategy(given, (await self._place(conversation)).memory_strategy, agents)

    async def _waiting(
        self, session: ChatSession, conversation: Conversation
    ) -> tuple[dict[str, Item], range]:
        """The items of the messages that the session does not have yet, by their ids, and their indexes."""
        turns, first = self._parts.turns, await session.mirrored()
        later = await turns.said_since(conversation.conversation_id, first)
        if not later:
            return {}, range(first, first)
        answers = await turns.answers_among(conversation.conversation_id, later)
        items = await run_in_thread_if_long(len(later), lambda: items_to_add(later, answers))
        return items, range(first, later[-1].message_index + 1)

    async def _bring_up_to_date(self, session: ChatSession, conversation: Conversation) -> None:
        waiting, places = await self._waiting(session, conversation)
        if waiting:
            links = self._parts.turns.item_links(conversation.conversation_id)
            await session.mirror(waiting, places.start, places.stop, links)

    async def _branch_named(self, conversation: Conversation, name: str) -> dict[str, Any]:
        found = (each for each in await self.branches_of(conversation) if each["name"] == name)
        branch = next(found, None)
        if branch is None:
            raise UnknownBranchError
        return branch


async def _names(session: ChatSession) -> set[str]:
    return {MAIN, *(branch["branch_id"] for branch in await session.list_branches())}


async def _view(items: list[Item], session_id: str, strategy: Strategy | None) -> list[Item]:
    """The view of items that are not stored as they stand here; of many in a thread, with a loop there."""
    if len(items) < _LONG:
        return await _shown(items, session_id, strategy)
    return await asyncio.to_thread(lambda: asyncio.run(_shown(items, session_id, strategy)))


async def _shown(items: list[Item], session_id: str, strategy: Strategy | None) -> list[Item]:
    copied = InMemorySession(session_id)
    if items:
        await copied.add_items(items)
    async with StrategySession(copied, strategy) as session:
        return list(await session.get_items())


def _without_placeholder_id(item: Item) -> Item:
    """The item without an id that stands for none: the SDK gives one to items of models that have no ids."""
    if item.get("id") not in PLACEHOLDER_IDS:
        return item
    return cast(Item, {name: value for name, value in item.items() if name != "id"})


def _main_of(conversation: Conversation, messages: int, users: int) -> dict[str, Any]:
    """The one branch of a conversation that is but recorded."""
    counted = {"branch_id": MAIN, "is_current": True, "message_count": messages}
    return _branch(conversation, {}, {**counted, "user_turns": users, "created_at": None})


def _branch(conversation: Conversation, known: Mapping[str, Any], branch: dict[str, Any]) -> dict[str, Any]:
    name = branch["branch_id"]
    from_branch, from_turn = made_from(known, name)
    return {
        "name": name,
        "is_current": branch["is_current"],
        "from_branch": from_branch,
        "from_turn": from_turn,
        "item_count": branch["message_count"],
        "user_turn_count": branch["user_turns"],
        "turn_count": branch["user_turns"],
        "created_at": _created_at(conversation, name, branch["created_at"]),
    }


def _created_at(conversation: Conversation, name: str, stored: str | None) -> str:
    if name == MAIN or stored is None:
        return tell_time(conversation.created_at)
    return tell_time(datetime.fromisoformat(stored).replace(tzinfo=UTC))
