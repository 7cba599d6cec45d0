"""What the provider keeps under ids of its own, deleted there when it is erased here."""

import asyncio
import logging
from collections.abc import Iterable

from ...errors import ExtractionError, ModelRefusedError
from .conversation_client import ConversationClient
from .parts import Parts

logger = logging.getLogger(__name__)

_AT_ONCE = 8  # requests
_LONGEST = 10.0  # seconds for all of them: whoever erases something waits for it


class Forgetting:
    """Has the provider delete conversations, as far as it does."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def forget(self, conversation_ids: Iterable[str]) -> int:
        """Delete at the provider those conversations that have an id there; returns how many are deleted."""
        found = await self._parts.turns.provider_ids(list(conversation_ids))
        if not found:
            return 0
        try:
            client = ConversationClient(self._parts.runtime.client())
        except ModelRefusedError:
            logger.warning("%d conversations stay at the provider: there is no key for it", len(found))
            return 0
        until = asyncio.get_running_loop().time() + _LONGEST
        at_once = asyncio.Semaphore(_AT_ONCE)
        return sum(await asyncio.gather(*(_delete(client, each, at_once, until) for each in sorted(found))))


async def _delete(client: ConversationClient, name: str, at_once: asyncio.Semaphore, until: float) -> bool:
    async with at_once:
        try:
            async with asyncio.timeout_at(until):
                return await client.delete(name)
        except (ExtractionError, TimeoutError) as error:
            logger.warning("the provider did not delete %s (%s)", name, type(error).__name__)
            return False
