"""The compaction of the Agents SDK, which wraps our sessions as it wraps its own."""

from ..extras import require_extra

require_extra("agents", "agents.memory", "OpenAIResponsesCompactionSession")

from agents.memory import (  # noqa: E402 - it needs the extra that is checked above
    OpenAIResponsesCompactionArgs,
    OpenAIResponsesCompactionAwareSession,
    OpenAIResponsesCompactionSession,
    is_openai_responses_compaction_aware_session,
)

__all__ = [
    "OpenAIResponsesCompactionArgs",
    "OpenAIResponsesCompactionAwareSession",
    "OpenAIResponsesCompactionSession",
    "is_openai_responses_compaction_aware_session",
]
