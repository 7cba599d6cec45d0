"""One turn at a time on a conversation, in all processes on its database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...errors import RunLockTimeoutError
from ...sessions.run_lock import run_lock
from .failures import ConversationBusyError
from .session_store import OpenAISQLAlchemySessionStore


@asynccontextmanager
async def alone_on(
    store: OpenAISQLAlchemySessionStore, conversation_id: str, timeout: float, lease: float
) -> AsyncIterator[None]:
    """Hold a conversation; a `ConversationBusyError` if another holds it for longer than `timeout` seconds.

    The lock goes by our own id of the conversation, whatever its session is called.
    """
    session = store.open(conversation_id)
    lock = run_lock(session, timeout=timeout, lease=lease)
    try:
        try:
            await lock.__aenter__()
        except RunLockTimeoutError as error:
            raise ConversationBusyError(conversation_id, timeout) from error
        try:
            yield
        finally:
            await lock.__aexit__(None, None, None)
    finally:
        await session.aclose()
