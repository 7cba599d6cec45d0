"""Reads of a chat: its branches, its usage, its events, and the view of the model."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

from ...errors import ConflictError
from ...items import Item
from ...items.shapes import PLACEHOLDER_IDS
from ...memory.conversation import Conversation
from ...memory.prompting import PromptParts
from ...memory.run import Days, Spent, SpentBy
from ...memory.store import MemoryStore
from ...memory.times import format_time
from ...sessions.advanced.scripts import MAIN
from ...sessions.advanced.usage import COUNTS
from ...sessions.events import ConversationEvent
from ...sessions.in_memory import InMemorySession
from ...strategies.configuration import resolve_memory_strategy
from ...strategies.reader import run_in_thread_if_long
from ...strategies.session import StrategySession
from ...strategies.values import Strategy
from ..errors import UnknownBranchError
from ..values import ChatTurn
from .active_turn import Parts
from .context import prepare_run_context
from .database.turns import ConversationPlace
from .sessions import ChatSession, branch_origin, items_to_mirror
from .turn_outcome import TurnHistory

_EVERYTHING = 2**31 - 1  # items
_LONG = 200  # items, from which on a view is computed in a thread


class OpenAIChatInspector:
    """Reads chats and manages their branches. The caller checks that the user may see the conversation.

    A conversation without a chat has no session: its items are derived from its messages. They are read here,
    so a conversation may be passed without them.
    """

    def __init__(self, parts: Parts, history: TurnHistory) -> None:
        self._parts = parts
        self._history = history

    async def branches_of(self, conversation: Conversation) -> list[dict[str, Any]]:
        """Each branch: `name, is_current, from_branch, from_turn, item_count, user_turn_count, created_at`.

        `from_branch` and `from_turn` are `None` for `main`.
        """
        async with self._open(conversation) as chat:
            data, found = await chat.read_data(), await chat.session.list_branches()
        if not found:
            counts = await self._parts.turns.count_messages(conversation.conversation_id)
            return [_main_branch(conversation, *counts)]
        return [_describe_branch(conversation, data, branch) for branch in found]

    async def create_branch(
        self, conversation: Conversation, from_turn: int, name: str | None = None
    ) -> dict[str, Any]:
        """Make a branch of all items before a user turn of the current one, make it current, and return it.

        Raises a `ValueError` for an unknown turn, and a `ConflictError` for a name that is taken.
        """
        async with self._open_locked(conversation) as chat:
            await self._mirror(chat, conversation)
            if name is not None and name in await _branch_names(chat):
                raise ConflictError("there is already a branch of this name")
            created = await chat.create_branch(from_turn, name)
        return await self._find_branch(conversation, created)

    async def switch_branch(self, conversation: Conversation, name: str) -> dict[str, Any]:
        """Make a branch current and return it; raises an `UnknownBranchError` if it does not exist."""
        async with self._open_locked(conversation) as chat:
            names = await _branch_names(chat)
            if name not in names:
                raise UnknownBranchError
            if names != {MAIN}:
                await chat.session.switch_to_branch(name)
        return await self._find_branch(conversation, name)

    async def delete_branch(self, conversation: Conversation, name: str) -> bool:
        """Delete a branch; `False` if it does not exist.

        Raises a `ConflictError` for `main` and for the current branch.
        """
        async with self._open_locked(conversation) as chat:
            if name not in await _branch_names(chat):
                return False
            if name in (MAIN, await chat.session.current_branch()):
                raise ConflictError("the main branch and the current one cannot be deleted")
            await chat.session.delete_branch(name)
        return True

    async def usage_of(self, conversation: Conversation) -> dict[str, Any]:
        """The cost of a conversation: `totals`, `by_turn` of the current branch, and its chat `turns`."""
        async with self._open(conversation) as chat:
            totals = await chat.session.get_session_usage()
            by_turn = cast(list[dict[str, Any]], await chat.session.get_turn_usage())
        turns = await self._parts.turns.list_turns(conversation.conversation_id)
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
        """The items that the model would see now, by the conversation's own strategy or by a given one.

        A given strategy is only tried: its summaries are made without a model, and nothing is stored.
        """
        items = await self._read_view(conversation, memory_strategy)
        return [_without_placeholder_id(item) for item in items]

    async def remembered_of(
        self,
        store: MemoryStore,
        conversation: Conversation,
        memory_strategy: Mapping[str, Any] | None = None,
    ) -> PromptParts:
        """What the prompt has from memory for the newest user message; empty without injection."""
        conversation_id, registry = conversation.conversation_id, self._parts.runtime.registry
        question = await self._parts.turns.newest_question(conversation_id)
        settings = await store.get_conversation_settings(conversation_id)
        if question is None or settings is None or conversation.agent_id not in registry.names():
            return PromptParts()
        place = await self._find_place(conversation)
        turn = ChatTurn(
            store, place.tenant, conversation, conversation.agent_id, question.content, "", memory_strategy
        )
        prepared = await prepare_run_context(
            turn,
            settings,
            registry.get(conversation.agent_id),
            session_id=place.session_id,
            summaries=self._parts.summaries,
            user_message_id=question.message_id,
            token_budget=self._parts.options.injection_tokens,
            read_mark=self._parts.turns.page_mark,
        )
        return prepared.remembered

    async def _read_view(
        self, conversation: Conversation, memory_strategy: Mapping[str, Any] | None
    ) -> list[Item]:
        strategy = await self._resolve_strategy(conversation, memory_strategy)
        async with self._open(conversation) as chat:
            missing, _ = await self._missing_items(chat, conversation)
            if missing or memory_strategy is not None:
                items = [*await chat.session.get_items(_EVERYTHING), *missing.values()]
                return await _compute_view(items, conversation.conversation_id, strategy)
            async with self._parts.view(chat, strategy) as view:
                return list(await view.get_items())

    async def spent_by_day(self, tenant: str, days: Days, by: SpentBy, limit: int) -> list[Spent]:
        """The cost of the chats of a tenant, by day and by model or agent; at most `limit` rows."""
        return await self._parts.turns.spent_by_day(tenant, days, by, limit)

    # --- sessions ---

    @asynccontextmanager
    async def _open(self, conversation: Conversation) -> AsyncIterator[ChatSession]:
        place = await self._find_place(conversation)
        chat = await self._parts.sessions.open_chat(conversation, place.tenant, place.session_id)
        async with chat:
            yield chat

    @asynccontextmanager
    async def _open_locked(self, conversation: Conversation) -> AsyncIterator[ChatSession]:
        """A session on which no turn is running, since its branch must not change under a turn."""
        options = self._parts.options
        async with self._parts.sessions.lock(
            conversation.conversation_id, options.lock_seconds, options.lease_seconds
        ):
            await self._history.end_running(conversation.conversation_id)
            async with self._open(conversation) as chat:
                yield chat

    async def _find_place(self, conversation: Conversation) -> ConversationPlace:
        place = await self._parts.turns.find_place(conversation.conversation_id)
        if place is None:
            raise ConflictError("there is no conversation with this conversation_id")
        return place

    async def _resolve_strategy(
        self, conversation: Conversation, given: Mapping[str, Any] | None
    ) -> Strategy | None:
        registry = self._parts.runtime.registry
        is_known = conversation.agent_id in registry.names()
        defaults = registry.get(conversation.agent_id).memory_strategy_defaults if is_known else None
        return resolve_memory_strategy(
            given, (await self._find_place(conversation)).memory_strategy, defaults
        )

    async def _missing_items(
        self, chat: ChatSession, conversation: Conversation
    ) -> tuple[dict[str, Item], range]:
        """The items of the messages that the session does not have yet, by message id, and their indexes."""
        turns, first = self._parts.turns, await chat.read_mirrored()
        later = await turns.list_messages(conversation.conversation_id, first)
        if not later:
            return {}, range(first, first)
        answers = await turns.answers_among(conversation.conversation_id, later)
        items = await run_in_thread_if_long(len(later), lambda: items_to_mirror(later, answers))
        return items, range(first, later[-1].message_index + 1)

    async def _mirror(self, chat: ChatSession, conversation: Conversation) -> None:
        missing, indexes = await self._missing_items(chat, conversation)
        if missing:
            links = self._parts.turns.item_links(conversation.conversation_id)
            await chat.mirror(missing, indexes.start, indexes.stop, links)

    async def _find_branch(self, conversation: Conversation, name: str) -> dict[str, Any]:
        for branch in await self.branches_of(conversation):
            if branch["name"] == name:
                return branch
        raise UnknownBranchError


async def _branch_names(chat: ChatSession) -> set[str]:
    return {MAIN, *(branch["branch_id"] for branch in await chat.session.list_branches())}


async def _compute_view(items: list[Item], session_id: str, strategy: Strategy | None) -> list[Item]:
    """The view of items that are not in a session. Many items are viewed in a thread with its own loop."""
    if len(items) < _LONG:
        return await _view_in_memory(items, session_id, strategy)
    return await asyncio.to_thread(lambda: asyncio.run(_view_in_memory(items, session_id, strategy)))


async def _view_in_memory(items: list[Item], session_id: str, strategy: Strategy | None) -> list[Item]:
    copy = InMemorySession(session_id)
    if items:
        await copy.add_items(items)
    async with StrategySession(copy, strategy) as view:
        return list(await view.get_items())


def _without_placeholder_id(item: Item) -> Item:
    """The item without a placeholder id, which the SDK gives to items of models that have no ids."""
    if item.get("id") not in PLACEHOLDER_IDS:
        return item
    return cast(Item, {name: value for name, value in item.items() if name != "id"})


def _main_branch(conversation: Conversation, messages: int, user_messages: int) -> dict[str, Any]:
    """The only branch of a conversation that has no session."""
    branch = {"branch_id": MAIN, "is_current": True, "message_count": messages, "created_at": None}
    return _describe_branch(conversation, {}, {**branch, "user_turns": user_messages})


def _describe_branch(
    conversation: Conversation, data: Mapping[str, Any], branch: dict[str, Any]
) -> dict[str, Any]:
    name = branch["branch_id"]
    from_branch, from_turn = branch_origin(data, name)
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
        return format_time(conversation.created_at)
    return format_time(datetime.fromisoformat(stored).replace(tzinfo=UTC))
