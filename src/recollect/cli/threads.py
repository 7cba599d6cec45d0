"""The threads of LangGraph, for `recollect sessions … --threads`."""

import argparse
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, RecollectError
from ..service_client import is_service_url
from .arguments import NotFoundError
from .database import resolve_existing_url, resolve_new_url
from .output import plural, print_note

if TYPE_CHECKING:
    from ..integrations.langgraph.threads import ThreadInfo
    from ..sessions.protocol import SessionInfo

_PAGE = 100  # threads
MESSAGES = "messages"
"""The channel that `show` shows: the messages of the newest checkpoint."""


async def list_threads(options: argparse.Namespace) -> "list[SessionInfo]":
    """The threads of a database in the form of sessions. Their items are checkpoints."""
    from ..integrations.langgraph.threads import ThreadList
    from ..sessions.protocol import SessionInfo, SessionMetadata

    async with ThreadList(resolve_existing_url(options)) as threads:
        found = await threads.list(user_id=options.user, limit=options.limit)
    return [
        SessionInfo(
            session_id=thread.thread_id,
            created_at=thread.created_at,
            updated_at=thread.updated_at,
            item_count=thread.checkpoints,
            metadata=SessionMetadata(user_id=thread.user_id),
        )
        for thread in found
    ]


async def read_thread(options: argparse.Namespace) -> list[Any]:
    """The newest messages of a thread, as items. Raises `NotFoundError` if there is no such thread."""
    try:
        items = await _read_messages(resolve_existing_url(options), options.session_id)
    except UnreadableThreadError as error:
        raise NotFoundError("the thread is encrypted: only a program with its key can read it") from error
    if items is None:
        raise NotFoundError("no thread with this id; `recollect sessions list --threads` shows all threads")
    return items if options.all else items[-options.limit :]


class UnreadableThreadError(RecollectError):
    """A thread was written with a serializer of its program, such as one that encrypts."""


async def _read_messages(url: str, thread_id: str) -> list[Any] | None:
    """All messages of the newest checkpoint of a thread, as items. `None` if there is no such thread."""
    from ..extras import require_extra

    require_extra("langgraph", "langgraph.checkpoint.base", "reading a thread")
    from langchain_core.messages import BaseMessage

    from ..integrations.langchain.messages import messages_to_items
    from ..integrations.langgraph.checkpointer import Checkpointer

    async with Checkpointer(url) as checkpointer:
        try:
            found = await checkpointer.aget_tuple({"configurable": {"thread_id": thread_id}})
        except NotImplementedError as error:  # a kind that LangGraph's own serializer does not have
            raise UnreadableThreadError("the thread needs the serializer that wrote it") from error
    if found is None:
        return None
    said = found.checkpoint["channel_values"].get(MESSAGES, [])
    return messages_to_items([each for each in said if isinstance(each, BaseMessage)])


async def export_threads(
    options: argparse.Namespace, user_id: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The threads of a user, or all, each with the messages of its newest checkpoint.

    Threads have no agent, and belong to the default tenant.
    """
    from ..integrations.langgraph.threads import ThreadList
    from ..memory.rights.personal_data import DEFAULT_TENANT

    if options.agent is not None or (options.tenant or DEFAULT_TENANT) != DEFAULT_TENANT:
        return
    url = resolve_existing_url(options)
    if is_service_url(url):  # a service exports threads with the rest of a user's data, or not at all
        return
    unread = 0
    async with ThreadList(url) as threads:
        after: tuple[datetime, str] | None = None
        while page := await threads.list(user_id=user_id, after=after, limit=_PAGE):
            for thread in page:
                exported = await _export_thread(url, thread)
                unread += not exported["is_readable"]
                yield exported
            after = (page[-1].updated_at, page[-1].thread_id)
    if unread:
        print_note(
            f"the messages of {plural(unread, 'thread')} are not in the export: they are encrypted,"
            " or the extra langgraph is not installed"
        )


async def _export_thread(url: str, thread: "ThreadInfo") -> dict[str, Any]:
    from ..memory.times import format_time

    return {
        "thread_id": thread.thread_id,
        "user_id": thread.user_id,
        "created_at": format_time(thread.created_at),
        "updated_at": format_time(thread.updated_at),
        "checkpoints": thread.checkpoints,
        **await _export_messages(url, thread.thread_id),
    }


async def _export_messages(url: str, thread_id: str) -> dict[str, Any]:
    try:
        return {"is_readable": True, "items": await _read_messages(url, thread_id) or []}
    except (MissingExtraError, UnreadableThreadError):
        return {"is_readable": False, "items": []}


async def import_store_items(options: argparse.Namespace, document: dict[str, Any]) -> dict[str, int]:
    """Import the items of the store in a user's export. They belong to the default tenant."""
    from ..memory.rights.personal_data import DEFAULT_TENANT

    if not document.get("store_items"):
        return {}
    if (options.tenant or DEFAULT_TENANT) != DEFAULT_TENANT:
        print_note("not imported: items of the store, which only the default tenant can have")
        return {}
    try:
        from ..integrations.langgraph import Store, import_items
    except ImportError as error:  # LangGraph is not installed
        print_note(f"not imported: items of the store: {error}")
        return {}
    async with Store(resolve_new_url(options)) as store:
        return {"store_items": await import_items(document, store)}


async def delete_thread(options: argparse.Namespace) -> None:
    """Delete a thread with all its checkpoints."""
    from ..integrations.langgraph.threads import ThreadList

    async with ThreadList(resolve_existing_url(options)) as threads:
        if not await threads.delete(options.session_id):
            raise NotFoundError(
                "no thread with this id; `recollect sessions list --threads` shows all threads"
            )
