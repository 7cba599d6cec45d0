"""Extraction by a model of Anthropic's."""

import json
import re
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Unpack, cast

from ...extras import DEFAULT_ANTHROPIC_MODEL
from ..pipeline.stages import Usage
from .asking import ExtractorOptions, Said, count_of
from .extractor import ModelExtractor
from .openai import with_schema
from .stage_prompts import Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")
_TOOL = "note_down"
_UNPARSED = "INVALID_JSON"  # under which the API gives arguments that are no JSON


class AnthropicExtractor(ModelExtractor):
    """Learns what there is to know with a model of Anthropic's.

    Without a client it makes one, which takes `ANTHROPIC_API_KEY` from the environment where no key is given.
    A client that is given stays the caller's, and is never closed.
    """

    package = "anthropic"
    # Models that always think, as the default one does, refuse a forced call, and are offered the tool.
    forms = ("tool", "offered_tool", "text")
    form_words = re.compile(r"\btool|input_schema", re.IGNORECASE)

    def __init__(
        self,
        model: str = DEFAULT_ANTHROPIC_MODEL,
        *,
        client: "AsyncAnthropic | None" = None,
        max_output_tokens: int = 8_000,
        **options: Unpack[ExtractorOptions],
    ) -> None:
        super().__init__(model, client=client, **options)
        if max_output_tokens < 1:
            raise ValueError(f"max_output_tokens must be at least 1, and it is {max_output_tokens}")
        self._max_output_tokens = max_output_tokens

    def _new_client(self, **options: Any) -> Any:
        return self._sdk.AsyncAnthropic(**options)

    def _send(self, client: Any, prompt: Prompt, form: str) -> AbstractAsyncContextManager[Any]:
        sent = client.messages.with_streaming_response.create(
            model=self.model,
            system=_instructions(prompt, form),
            messages=[{"role": "user", "content": prompt.text}],
            max_tokens=self._max_output_tokens,
            **_tool(prompt, form),
        )
        return cast(AbstractAsyncContextManager[Any], sent)

    def _read(self, body: dict[str, Any]) -> Said:
        usage, stopped = body.get("usage") or {}, body.get("stop_reason")
        blocks = body["content"]
        calls = [_arguments(block["input"]) for block in blocks if block["type"] == "tool_use"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        return Said(
            "\n".join(calls or texts),
            Usage(
                sum(count_of(usage.get(name)) for name in _INPUT_TOKENS), count_of(usage.get("output_tokens"))
            ),
            is_whole=stopped not in _CUT_OFF,
            is_refusal=stopped == "refusal",
        )

    @property
    def _client_error(self) -> type[Exception]:
        return cast(type[Exception], self._sdk.AnthropicError)


def _instructions(prompt: Prompt, form: str) -> str:
    if form == "offered_tool":
        return f"{prompt.instructions}\n\nAnswer with one call of the tool {_TOOL}, and with nothing else."
    return prompt.instructions if form == "tool" else with_schema(prompt)


def _tool(prompt: Prompt, form: str) -> dict[str, Any]:
    """The one tool, whose arguments are the answer; nothing where the answer is a text."""
    if form == "text":
        return {}
    described = "Notes down the answer, all of it in one call."
    tool = {"name": _TOOL, "description": described, "input_schema": prompt.schema}
    choice = {"type": "tool", "name": _TOOL} if form == "tool" else {"type": "auto"}
    return {"tools": [tool], "tool_choice": choice}


def _arguments(given: Any) -> str:
    """The arguments as the model wrote them."""
    if isinstance(given, dict) and given.keys() == {_UNPARSED}:
        return str(given[_UNPARSED])
    return json.dumps(given, ensure_ascii=False)
