"""How chats are answered, whatever the settings of a service look like."""

from dataclasses import dataclass, field
from typing import Any

from .run_config import ModelEndpoint


@dataclass(frozen=True)
class ChatOptions:
    """Which model answers, where it is asked, and how long a turn waits for the one before."""

    model: str | None = None
    """For agents that name none; without one they are answered from memory alone."""
    endpoint: ModelEndpoint = field(default_factory=ModelEndpoint)
    timeout_seconds: float | None = 120.0
    """How long a turn may take, all that it asks of models and tools together."""
    lock_seconds: float = 30.0
    """How long a turn waits for another of the same conversation."""
    lease_seconds: float = 30.0
    """After which the conversation of a process that died is free again."""
    quiet_seconds: float | None = 300.0
    """Of quiet, after which a conversation is learned from; `None`: at once."""
    provider_conversations: bool = False
    """Whether conversations get an id at the provider (`conv_*`) when they are first chatted in."""
    injection_tokens: int = 1000
    """How many tokens of what is remembered go into the instructions."""


def read_options(settings: Any, quiet_seconds: float | None = None) -> ChatOptions:
    """The options that an object says by attributes of the same names, such as settings of the service."""
    if isinstance(settings, ChatOptions):
        return settings
    defaults = ChatOptions()
    told = {
        name: getattr(settings, name, getattr(defaults, name))
        for name in ("model", "timeout_seconds", "lock_seconds", "provider_conversations")
    }
    quiet = defaults.quiet_seconds if quiet_seconds is None else quiet_seconds
    return ChatOptions(endpoint=_endpoint(settings), quiet_seconds=quiet, **told)


def _endpoint(settings: Any) -> ModelEndpoint:
    key = getattr(settings, "api_key", None)
    reveal = getattr(key, "get_secret_value", None)
    return ModelEndpoint(
        base_url=getattr(settings, "base_url", None),
        api_key=reveal() if reveal is not None else key,
        timeout=getattr(settings, "timeout_seconds", ModelEndpoint.timeout),
        api=getattr(settings, "api", "auto"),
    )
