"""The names of the provider that can be imported from `recollect`."""

from ...extras import require_extra

require_extra("agents", "agents", "the chat provider")

from .context import build_memory_strategy_config, prepare_run_context  # noqa: E402
from .provider import OpenAIAgentProvider, build_openai_provider  # noqa: E402
from .sessions import OpenAISQLAlchemySessionStore  # noqa: E402

__all__ = [
    "OpenAIAgentProvider",
    "OpenAISQLAlchemySessionStore",
    "build_memory_strategy_config",
    "build_openai_provider",
    "prepare_run_context",
]
