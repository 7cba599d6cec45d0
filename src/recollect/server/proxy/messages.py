"""Anthropic's Messages API.

Prompt caching covers everything up to a block with `cache_control`. A block of memories is different at each
call, so it always goes after the last of these.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from .exact_json import elements_of, encode, fields_of
from .values import Answer, Body, Place, Said, Thread, objects_in, texts_in

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

    def add_memories(self, content: bytes, body: Body, block: str, place: Place) -> bytes | None:  # noqa: ARG002
        """Add the block to the system text, or after the messages if they are cached.

        A call that asks for automatic caching gets its mark at its last own block instead, which is the same.
        """
        messages, fields = objects_in(body.get("messages")), fields_of(content)
        mark = fields.pop(_MARK, None) if isinstance(body.get(_MARK), dict) else None
        if mark is None and not _has_mark(messages):
            return _with_system(fields, body.get("system"), block)
        if not messages or messages[-1].get("role") != "user":
            return None
        raw = elements_of(fields["messages"])
        raw[-1] = _with_block(raw[-1], messages[-1].get("content"), block, mark)
        return bytes(encode({**fields, "messages": raw}))

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


def _has_mark(messages: Sequence[Mapping[str, Any]]) -> bool:
    contents = (message.get("content") for message in messages)
    return any(_MARK in block for content in contents for block in objects_in(content))


def _with_system(fields: dict[str, Raw], system: object, block: str) -> bytes | None:
    if isinstance(system, list):
        blocks = [*elements_of(fields["system"]), encode({"type": "text", "text": block})]
        return bytes(encode({**fields, "system": blocks}))
    if system is not None and not isinstance(system, str):
        return None
    return bytes(encode({**fields, "system": f"{system}\n\n{block}" if system else block}))


def _with_block(raw: Raw, content: object, block: str, mark: Raw | None) -> Raw:
    """A message of the user with the block after its own. With a mark, its last own block gets that."""
    fields = fields_of(raw)
    own = elements_of(fields["content"]) if isinstance(content, list) else [_text_block(content)]
    if mark is not None and own:
        own[-1] = encode({_MARK: mark, **fields_of(own[-1])})
    return encode({**fields, "content": [*own, _text_block(block)]})


def _text_block(text: object) -> Raw:
    return encode({"type": "text", "text": text})
