"""Long-term memory for the Claude Agent SDK: a page in the system prompt, and a hook for each prompt."""

from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from ...ids import new_hex
from ...memory.prompting import PromptOptions, PromptOwner, check_prompt_owner, prompts_of
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE

_EVENT = "UserPromptSubmit"
_DEFAULTS = PromptOptions()


async def with_memory(
    options: ClaudeAgentOptions,
    store: MemoryStore,
    user_id: str,
    *,
    agent_id: str = "claude",
    prompt: PromptOptions = _DEFAULTS,
) -> ClaudeAgentOptions:
    """Options for a client that remembers one user.

    A page about the user follows the system prompt, and stays there as long as the client is used: Claude
    Code reads it when it starts. What is remembered about a prompt, led by what has changed since then, is
    added to it as context. Claude Code keeps that in its transcript, and replays it. If memory fails, that is
    logged, and the prompt goes on without it.
    """
    owner = PromptOwner(store, *check_prompt_owner(agent_id, user_id), f"client:{new_hex()}")
    fixed = replace(prompt, refresh="conversation", idle_seconds=float(10**9))
    prompts = prompts_of(store)
    first = await prompts.compose(owner, "", fixed, patience=DEFAULT_PATIENCE)

    async def remember(given: Any, _tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        parts = await prompts.compose(owner, str(given.get("prompt", "")), fixed, patience=DEFAULT_PATIENCE)
        if not parts.tail:
            return {}
        return {"hookSpecificOutput": {"hookEventName": _EVENT, "additionalContext": parts.tail}}

    hooks: dict[Any, list[HookMatcher]] = dict(options.hooks or {})
    hooks[_EVENT] = [*hooks.get(_EVENT, []), HookMatcher(hooks=[remember])]  # type: ignore[list-item]
    return replace(options, system_prompt=_with_page(options.system_prompt, first.page), hooks=hooks)


def _with_page(given: Any, page: str) -> Any:
    """The system prompt with the page at its end. One that is in a file stays as it is."""
    if not page:
        return given
    if given is None or isinstance(given, str):
        return "\n\n".join(filter(None, (given, page)))
    if given.get("type") == "preset":
        return {**given, "append": "\n\n".join(filter(None, (given.get("append"), page)))}
    return given
