"""A retriever for LangChain over long-term memory: what is known about a user, and what was said."""

from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ...memory.hits import MemoryHit, TurnHit
from ...memory.store import MemoryStore
from ..blocking import run_blocking


class MemoryRetriever(BaseRetriever):
    """Finds entries and messages about a user, the best first, each with its score and where it is from.

    `search` is `memories` (entries, with their evidence), `conversations` (messages), or `all`. Without an
    `agent_id`, all agents of the user are searched.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: MemoryStore
    user_id: str
    agent_id: str | None = None
    search: Literal["memories", "conversations", "all"] = "memories"
    limit: int = 10

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return run_blocking(self._find(query))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return await self._find(query)

    async def _find(self, query: str) -> list[Document]:
        found: list[Document] = []
        given: dict[str, Any] = {"limit": self.limit}
        if self.search != "conversations":
            known = await self.store.search_memories(query, self.agent_id, self.user_id, **given)
            found += [_of_entry(hit) for hit in known.hits]
        if self.search != "memories":
            said = await self.store.search_conversations(query, self.agent_id, self.user_id, **given)
            found += [_of_message(hit) for hit in said.hits]
        return found


def _of_entry(hit: MemoryHit) -> Document:
    metadata = {"kind": "entry", "agent_id": hit.agent_id, "score": hit.score, **hit.entry.to_dict()}
    return Document(page_content=hit.entry.text, id=hit.entry.content_id, metadata=metadata)


def _of_message(hit: TurnHit) -> Document:
    message = hit.to_dict()["message"]
    metadata = {
        "kind": "message",
        "agent_id": hit.agent_id,
        "score": hit.score,
        "conversation_id": hit.conversation_id,
        "session_id": hit.session_id,
        **{name: value for name, value in message.items() if name != "content"},
    }
    return Document(page_content=hit.message.content, id=hit.message.message_id, metadata=metadata)
