"""What a chat looks like."""

from typing import Any, Self

from pydantic import Field, model_validator

from ...providers.values import AgentInfo
from . import examples
from .base import Answer, Asked, Key, OwnerId, Text, exampled
from .strategies import MemoryStrategy


class ChatRequest(Asked):
    """A message to an agent, in a conversation that is there or in a new one."""

    model_config = exampled({"user_id": "ada", "message": "Where do I live?", "memory_injection": True})

    message: Text = Field(description="What the user says.")
    conversation_id: Key | None = Field(None, description="The conversation to go on with; else a new one.")
    user_id: OwnerId | None = Field(None, description="Who says it; needed where the conversation is new.")
    agent: Key | None = Field(None, description="Who is asked; else the conversation's or the default agent.")
    agent_id: Key | None = Field(None, description="The same as `agent`, as other routes call it.")
    session_id: Key | None = Field(None, description="What a new conversation belongs to, if it has a name.")
    memory_strategy: MemoryStrategy | None = Field(
        None, description="What the model sees of the history, in this turn."
    )
    memory_injection: bool | None = Field(
        None, description="Whether the model is shown what is remembered, in this turn."
    )

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        if None not in (self.agent, self.agent_id) and self.agent != self.agent_id:
            raise ValueError("agent and agent_id must name the same agent")
        return self

    @property
    def wanted_agent(self) -> str | None:
        """The agent that is asked for, by either name of the field."""
        return self.agent_id if self.agent is None else self.agent


class ChatUsageTold(Answer):
    """What a turn cost."""

    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ToolCallTold(Answer):
    """A tool that was called."""

    call_id: str
    name: str


class ChatAnswer(Answer):
    """A turn of a chat that is finished."""

    model_config = exampled(
        {
            "turn_id": examples.TURN_ID,
            "conversation_id": examples.CONVERSATION_ID,
            "session_id": examples.SESSION_ID,
            "agent": examples.AGENT,
            "agent_id": examples.AGENT,
            "model": "offline",
            "text": "What I know:\n> The user lives in Lisbon.",
            "user_message_id": examples.MESSAGE_ID,
            "assistant_message_id": examples.REPLY_ID,
            "usage": {"requests": 1, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
            "tool_calls": [],
            "memories_used": 1,
        }
    )

    turn_id: str
    conversation_id: str
    session_id: str
    agent: str = Field(description="The agent that answered.")
    agent_id: str = Field(description="The same as `agent`.")
    model: str = Field(description="The model that it ran on; `offline` is the built-in agent without one.")
    text: str = Field(description="What it said.")
    user_message_id: str
    assistant_message_id: str
    usage: ChatUsageTold
    tool_calls: list[ToolCallTold]
    memories_used: int = Field(
        description="Entries and messages from memory that the model was shown, or the offline agent quotes."
    )


class AgentTold(Answer):
    """An agent that can be talked to."""

    name: str
    description: str
    model: str
    tools: list[str]
    handoffs: list[str]


class AgentList(Answer):
    """The agents that can be talked to."""

    model_config = exampled(
        {
            "agents": [
                {
                    "name": examples.AGENT,
                    "description": "Answers, and remembers.",
                    "model": "offline",
                    "tools": [],
                    "handoffs": [],
                }
            ]
        }
    )

    agents: list[AgentTold]


def tell_agent(agent: AgentInfo) -> dict[str, Any]:
    """An agent as JSON tells it."""
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "tools": list(agent.tools),
        "handoffs": list(agent.handoffs),
    }
