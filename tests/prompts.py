"""Conversations of twenty turns, and the check that each prompt keeps the prefix that a provider has cached.

Every door to a model is tested with it: `converse` asks the questions while memory changes, and `check` looks
at the recorded requests. Providers cache tokens, not bytes of JSON, so a request is compared as the blocks of
text that the model reads, in order: `"a"` and `[{"type": "text", "text": "a"}]` are the same.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from recollect import MemoryStore
from recollect.items import BEGIN

FACTS = (
    ("profile", "The user lives in Lisbon."),
    ("profile", "The user's sister Maria is a nurse."),
    ("instruction", "The user wants short answers."),
)
SAID = "My sailing boat in the harbour is called Argo."
LATER = {
    6: ("profile", "The user adopted a dog called Rex."),
    12: ("event", "The user broke an arm while climbing."),
}
"""What becomes known before a turn."""
QUESTIONS = tuple(
    {
        3: "What is my sailing boat called?",
        7: "What is my dog called?",
        9: "Where do I live?",
        13: "How is my arm?",
        16: "What is my boat in the harbour called?",
    }.get(turn, f"What about subject number {turn}?")
    for turn in range(20)
)
PAGE, TAIL = "lives in Lisbon", "is called Argo"


class Block(NamedTuple):
    """One text of a prompt, with the role that says it."""

    role: str
    text: str

    @property
    def is_tail(self) -> bool:
        return self.text.startswith(BEGIN)


async def remember(store: MemoryStore, agent_id: str, user_id: str) -> None:
    """What is known before the conversation starts."""
    for kind, text in FACTS:
        await store.add_entry(agent_id, user_id, kind, text)  # type: ignore[arg-type]
    said = [{"role": "user", "content": SAID}]
    await store.record_conversation(agent_id, user_id, said, created_at="2024-05-07T10:00:00Z")


async def converse(
    store: MemoryStore, agent_id: str, user_id: str, ask: Callable[[str], Awaitable[object]]
) -> None:
    """Ask the questions, while more becomes known."""
    await remember(store, agent_id, user_id)
    for turn, question in enumerate(QUESTIONS):
        if turn in LATER:
            await store.add_entry(agent_id, user_id, *LATER[turn])  # type: ignore[arg-type]
        await ask(question)


def check(prompts: Sequence[Sequence[Block]], refreshed: Collection[int] = ()) -> None:
    """Each prompt begins with the one before it, up to and including its newest message of the user.

    Beside that: the page is in the system text from the first turn on and what becomes known is not, but in
    the tail. No tail is replayed.
    """
    assert len(prompts) == len(QUESTIONS)
    for turn, (before, prompt) in enumerate(pairwise(prompts), 1):
        if turn not in refreshed:
            end = newest_question(before) + 1
            assert encoded(prompt).startswith(encoded(before[:end])), f"turn {turn} changes the prefix"
    for turn, prompt in enumerate(prompts):
        newest = newest_question(prompt)
        stable = "\n".join(block.text for block in prompt[:newest])
        assert PAGE in stable, f"turn {turn} has no page"
        assert not [text for _, text in LATER.values() if text in stable]
        assert TAIL not in stable, "no tail is replayed"
        assert prompt[newest].text == QUESTIONS[turn]
    assert TAIL in tail_of(prompts[3])
    assert PAGE not in tail_of(prompts[9]), "the page says it"
    assert not tail_of(prompts[5])
    for turn, (_, text) in LATER.items():
        assert text in tail_of(prompts[turn]), "it leads with what has changed"


def tail_of(prompt: Sequence[Block]) -> str:
    """The tail of a prompt; empty if it has none."""
    return "\n".join(block.text for block in prompt[newest_question(prompt) + 1 :] if block.is_tail)


def newest_question(prompt: Sequence[Block]) -> int:
    """The place of the newest message of the user."""
    return max(place for place, block in enumerate(prompt) if block.role == "user" and not block.is_tail)


def encoded(prompt: Iterable[Block]) -> bytes:
    """A prompt as bytes."""
    return b"".join(json.dumps(block).encode() + b"\n" for block in prompt)


def prompt_of(body: dict[str, Any]) -> list[Block]:
    """The blocks of a request to the Responses API, Chat Completions or Anthropic's Messages, in order."""
    tools = [Block("tools", json.dumps(each)) for each in body.get("tools") or ()]
    system = [Block("system", text) for key in ("instructions", "system") for text in _texts(body.get(key))]
    given = body.get("messages", body.get("input"))
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    return [*tools, *system, *(block for item in items for block in _blocks(item))]


def _blocks(item: dict[str, Any]) -> list[Block]:
    role, content = item.get("role"), item.get("content")
    if role is None or (not isinstance(content, str) and not content):
        return [Block("other", json.dumps(item))]
    return [Block(role, text) for text in _texts(content)]


def _texts(content: object) -> list[str]:
    if isinstance(content, list):
        plain = ({key: each[key] for key in each if key != "cache_control"} for each in content)
        return [str(each["text"]) if "text" in each else json.dumps(each) for each in plain]
    return [] if content is None else [str(content)]
