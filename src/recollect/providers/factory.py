"""The chat provider of a service. This is the only module of `providers` that chooses an implementation."""

from typing import Any

from ..memory.pipeline.token_meter import TokenMeter
from .openai.registry import AgentRegistry as AgentRegistry
from .protocol import ChatProvider


def build_chat_provider(
    url: str,
    settings: Any,
    agents: AgentRegistry | None = None,
    *,
    meter: TokenMeter | None = None,
    quiet_seconds: float | None = None,
    **database: Any,
) -> ChatProvider:
    """The provider for the `chat` section of the settings of a service; it connects to nothing yet.

    Without `agents`, they are read from the file that the settings name in `agents_file`. `database` holds
    `create_tables` and `engine_kwargs`.
    """
    from .openai.provider import build_openai_provider

    if agents is None and settings.agents_file is not None:
        agents = AgentRegistry.from_toml(settings.agents_file)
    return build_openai_provider(url, agents, settings, meter=meter, quiet_seconds=quiet_seconds, **database)
