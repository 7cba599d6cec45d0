"""OpenAI's Chat Completions API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from ...memory.prompting import PromptParts
from .exact_json import elements_of, encode, fields_of
from .values import Answer, Body, Said, Thread, newest_user, objects_in, texts_in

_SYSTEM = ("system", "developer")
_TEXT = ("text",)


class ChatCompletions:
    """Reads and changes calls of `/v1/chat/completions`."""

    def user_of(self, body: Body) -> object:
        """The field `user`, else `safety_identifier`."""
        return body.get("user") or body.get("safety_identifier")

    def thread_of(self, body: Body) -> Thread:  # noqa: ARG002 - calls have all their messages
        """Nothing: the provider keeps no turns."""
        return Thread()

    def said_in(self, body: Body) -> Sequence[Said]:
        """The texts of the messages."""
        return [
            Said(message["role"], text, message.get("name"))
            for message in objects_in(body.get("messages"))
            if message.get("role") in ("user", "assistant")
            and (text := texts_in(message.get("content"), _TEXT)).strip()
        ]

    def add_memories(self, content: bytes, body: Body, parts: PromptParts) -> bytes | None:
        """Add the page to the system text, and the tail as a message of its own."""
        messages = objects_in(body.get("messages"))
        newest = newest_user(messages)
        if newest is None:
            return None
        fields = fields_of(content)
        raw = elements_of(fields["messages"])
        leading = _count_leading(messages)
        role = messages[leading - 1]["role"] if leading else "system"
        if parts.tail:
            raw.insert(newest + 1, encode({"role": role, "content": parts.tail}))
        if parts.page and leading and (own := _extended(raw[leading - 1], messages[leading - 1], parts.page)):
            raw[leading - 1] = own
        elif parts.page:
            raw.insert(leading, encode({"role": role, "content": parts.page}))
        return bytes(encode({**fields, "messages": raw}))

    def answer_in(self, document: Body) -> Answer | None:
        """The text of the only choice."""
        choices = objects_in(document.get("choices"))
        if not choices:
            return None
        message = choices[0].get("message")
        if len(choices) > 1 or not isinstance(message, dict):
            return Answer(None)
        return Answer(texts_in(message.get("content"), _TEXT) or None)

    def answer_in_events(self, events: Iterable[Mapping[str, Any]]) -> Answer | None:
        """The text of the only choice, if its end was sent."""
        pieces: list[str] = []
        is_complete, is_single = False, True
        for event in events:
            if "error" in event:
                return None
            for choice in objects_in(event.get("choices")):
                is_single = is_single and choice.get("index", 0) == 0
                is_complete = is_complete or choice.get("finish_reason") is not None
                delta = choice.get("delta")
                pieces.append(texts_in(delta.get("content"), _TEXT) if isinstance(delta, dict) else "")
        if not is_complete:
            return None
        return Answer("".join(pieces) or None if is_single else None)


def _count_leading(messages: Sequence[Mapping[str, Any]]) -> int:
    """The number of system messages at the start."""
    others = (place for place, message in enumerate(messages) if message.get("role") not in _SYSTEM)
    return next(others, len(messages))


def _extended(raw: Raw, message: Mapping[str, Any], block: str) -> Raw | None:
    """A system message with the block after its text; `None` if its content is of an unknown form."""
    content, fields = message.get("content"), fields_of(raw)
    if isinstance(content, str):
        return encode({**fields, "content": f"{content}\n\n{block}"})
    if isinstance(content, list):
        parts = [*elements_of(fields["content"]), encode({"type": "text", "text": block})]
        return encode({**fields, "content": parts})
    return None
