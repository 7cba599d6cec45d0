"""The contract between a service and the provider of its chats."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ..items import Item
from ..memory.conversation import Conversation
from ..memory.prompting import PromptParts
from ..memory.run import Days, Spent, SpentBy
from ..memory.store import MemoryStore
from ..sessions.events import ConversationEvent
from .turn_events import TurnEvents
from .values import AgentInfo, ChatReply, ChatTurn


class ChatInspector(Protocol):
    """Reads chats and manages their branches. The caller checks that the user may see the conversation."""

    async def branches_of(self, conversation: Conversation) -> list[dict[str, Any]]:
        """The branches of a chat; a conversation without a chat has the branch `main`."""
        ...

    async def create_branch(
        self, conversation: Conversation, from_turn: int, name: str | None = None
    ) -> dict[str, Any]:
        """Make a branch of all items before a user turn, make it current, and return it."""
        ...

    async def switch_branch(self, conversation: Conversation, name: str) -> dict[str, Any]:
        """Make a branch current and return it; raises an `UnknownBranchError` if it does not exist."""
        ...

    async def delete_branch(self, conversation: Conversation, name: str) -> bool:
        """Delete a branch; `False` if it does not exist."""
        ...

    async def usage_of(self, conversation: Conversation) -> dict[str, Any]:
        """The cost of a chat: `totals`, `by_turn` and `turns`."""
        ...

    async def events_of(
        self, conversation: Conversation, after: int | None = None, limit: int = 100
    ) -> list[ConversationEvent]:
        """The first `limit` events after a sequence number, in order."""
        ...

    async def view_of(
        self, conversation: Conversation, memory_strategy: Mapping[str, Any] | None = None
    ) -> list[Item]:
        """The items that the model would see now, by the conversation's strategy or a given one."""
        ...

    async def remembered_of(
        self,
        store: MemoryStore,
        conversation: Conversation,
        memory_strategy: Mapping[str, Any] | None = None,
    ) -> PromptParts:
        """What the prompt has from memory for the newest user message; empty without injection."""
        ...

    async def spent_by_day(self, tenant: str, days: Days, by: SpentBy, limit: int) -> list[Spent]:
        """The cost of the chats of a tenant, by day and by model or agent; at most `limit` rows."""
        ...


class ChatProvider(Protocol):
    """Runs the turns of chats. The service depends on this protocol, and gets its provider from a factory."""

    @property
    def inspector(self) -> ChatInspector:
        """Reads of chats, and their branches."""
        ...

    def agents(self) -> list[AgentInfo]:
        """The agents that users can chat with."""
        ...

    @property
    def lacks_model_key(self) -> bool:
        """Whether an agent has a model, but its provider's API key is missing: its chats will fail."""
        ...

    async def prepare(self) -> None:
        """Load what the first turn needs, beside the event loop; nothing if no agent has a model."""
        ...

    async def run(self, turn: ChatTurn) -> ChatReply:
        """Run a turn and return its reply. A turn that is done returns its recorded reply."""
        ...

    async def start(self, turn: ChatTurn) -> TurnEvents:
        """Start a turn and return its events. Raises an error if the turn cannot start."""
        ...

    async def is_answered(self, turn: ChatTurn) -> bool:
        """Whether a turn is done; raises a `TurnRunningError` while it runs."""
        ...

    async def forget(self, conversation_ids: Iterable[str]) -> int:
        """Delete copies of conversations outside of our database; returns how many were deleted."""
        ...

    async def aclose(self, grace: float = 0.0) -> None:
        """Wait at most `grace` seconds for running turns, interrupt the rest, and close everything."""
        ...
