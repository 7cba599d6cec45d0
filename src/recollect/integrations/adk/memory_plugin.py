"""Long-term memory as a plugin of ADK, for the prompts of all agents of an app."""

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content, Part
from typing_extensions import override

from ...memory.prompting import PromptOptions, PromptOwner, prompts_of
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE

_DEFAULTS = PromptOptions()


class MemoryPlugin(BasePlugin):
    """What a `MemoryStore` knows about the user of a session, for each call of a model.

    A page about the user follows the instructions, and stays there as it is while a session goes on. What is
    remembered about the newest message comes right after it, and is in no session. If memory fails, that is
    logged, and the run goes on without it.
    """

    def __init__(
        self, memory: MemoryStore, *, prompt: PromptOptions = _DEFAULTS, name: str = "recollect_memory"
    ) -> None:
        super().__init__(name)
        self._memory = memory
        self._options = prompt

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Add what is known to a request."""
        session = callback_context.session
        asked = [place for place, content in enumerate(llm_request.contents) if _is_question(content)]
        parts = await prompts_of(self._memory).compose(
            PromptOwner(self._memory, session.app_name, callback_context.user_id, session.id),
            _text_of(llm_request.contents[asked[-1]]) if asked else "",
            self._options,
            turn=callback_context.invocation_id,
            patience=DEFAULT_PATIENCE,
            seen=[_text_of(content) for content in llm_request.contents],
        )
        if parts.page:
            llm_request.append_instructions([parts.page])
        if parts.tail and asked:
            llm_request.contents.insert(asked[-1] + 1, Content(role="user", parts=[Part(text=parts.tail)]))
        return None


def _is_question(content: Content) -> bool:
    return content.role == "user" and bool(_text_of(content).strip())


def _text_of(content: Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)
