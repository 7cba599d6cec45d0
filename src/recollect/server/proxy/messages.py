"""Anthropic's Messages API.

Prompt caching covers everything up to a block with `cache_control`. The page about the user follows the own
system text, and is the same in each call of a conversation. A tail is different in each turn. It goes after
the own blocks of the newest message.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from ...memory.prompting import PromptParts
from .exact_json import elements_of, encode, fields_of
from .values import Answer, Body, Said, Thread, objects_in, texts_in

_TEXT = ("text",)
_MARK = "cache_control"


class Messages:
    """Reads and changes calls of `/v1/messages` and `/v1/messages/count_tokens`."""

    def user_of(self, body: Body) -> object:
        """The field `user_id` of the `metadata`."""
        metadata = body.get("metadata")
        return metadata.get("user_id") if isinstance(metadata, dict) else None

    def thread_of(self, body: Body) -> Thread:  # noqa: ARG002 - calls have all their messages
        """Nothing: the provider keeps no turns."""
        return Thread()

    def said_in(self, body: Body) -> Sequence[Said]:
        """The texts of the messages, without tool results."""
        return [
            Said(message["role"], text)
            for message in objects_in(body.get("messages"))
            if message.get("role") in ("user", "assistant")
            and (text := texts_in(message.get("content"), _TEXT)).strip()
        ]

    def add_memories(self, content: bytes, body: Body, parts: PromptParts) -> bytes | None:
        """Add the page after the system text, and the tail as a block of its own.

        A call that asks for automatic caching gets its mark at its last own block instead of at the tail.
        """
        messages, fields = objects_in(body.get("messages")), fields_of(content)
        newest = _newest_question(messages)
        system = _with_system(fields, body.get("system"), parts.page) if parts.page else None
        if system is not None:
            fields["system"] = system
        if parts.tail and newest is not None:
            is_last = newest == len(messages) - 1 and isinstance(body.get(_MARK), dict)
            mark = fields.pop(_MARK) if is_last else None
            raw = elements_of(fields["messages"])
            raw[newest] = _with_block(raw[newest], messages[newest].get("content"), parts.tail, mark)
            return bytes(encode({**fields, "messages": raw}))
        return None if system is None else bytes(encode(fields))

    def answer_in(self, document: Body) -> Answer | None:
        """The texts of the answer."""
        if document.get("type") != "message":
            return None
        return Answer(texts_in(document.get("content"), _TEXT) or None)

    def answer_in_events(self, events: Iterable[Mapping[str, Any]]) -> Answer | None:
        """The texts of the answer, if its end was sent."""
        blocks: dict[Any, str] = {}
        for event in events:
            kind, delta = event.get("type"), event.get("delta")
            if kind == "error":
                return None
            if kind == "message_stop":
                return Answer("\n".join(filter(None, blocks.values())) or None)
            if isinstance(delta, dict) and delta.get("type") == "text_delta":
                index = event.get("index")
                blocks[index] = blocks.get(index, "") + str(delta.get("text", ""))
        return None


def _newest_question(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the newest message of the user that says something, and is not only results of tools."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "user" and texts_in(message.get("content"), _TEXT).strip():
            return place
    return None


def _with_system(fields: dict[str, Raw], system: object, page: str) -> Raw | None:
    if isinstance(system, list):
        return encode([*elements_of(fields["system"]), _text_block(page)])
    if system is not None and not isinstance(system, str):
        return None
    return encode(f"{system}\n\n{page}" if system else page)


def _with_block(raw: Raw, content: object, block: str, mark: Raw | None) -> Raw:
    """A message of the user with the block after its own. With a mark, its last own block gets that."""
    fields = fields_of(raw)
    own = elements_of(fields["content"]) if isinstance(content, list) else [_text_block(content)]
    if mark is not None and own:
        own[-1] = encode({_MARK: mark, **fields_of(own[-1])})
    return encode({**fields, "content": [*own, _text_block(block)]})


def _text_block(text: object) -> Raw:
    return encode({"type": "text", "text": text})
