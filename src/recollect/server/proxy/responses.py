"""OpenAI's Responses API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from ...memory.prompting import PromptParts
from .exact_json import elements_of, encode, fields_of
from .values import Answer, Body, Said, Thread, newest_user, objects_in, texts_in

_TEXT = ("input_text", "output_text", "text")
_ENDED = ("completed", "incomplete")


class Responses:
    """Reads and changes calls of `/v1/responses`."""

    def user_of(self, body: Body) -> object:
        """The field `user`, else `safety_identifier`."""
        return body.get("user") or body.get("safety_identifier")

    def thread_of(self, body: Body) -> Thread:
        """The conversation or the previous response that the call continues."""
        conversation, previous = body.get("conversation"), body.get("previous_response_id")
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        return Thread(
            conversation if isinstance(conversation, str) else None,
            previous if isinstance(previous, str) else None,
        )

    def said_in(self, body: Body) -> Sequence[Said]:
        """The input text, or the texts of the input messages."""
        given = body.get("input")
        if isinstance(given, str):
            return [Said("user", given)] if given.strip() else []
        return [
            Said(item["role"], text)
            for item in objects_in(given)
            if item.get("role") in ("user", "assistant")
            and (text := texts_in(item.get("content"), _TEXT)).strip()
        ]

    def add_memories(self, content: bytes, body: Body, parts: PromptParts) -> bytes | None:
        """Add the page to the instructions, and the tail as an item of its own.

        A conversation of the provider stores the tail: it stays part of the prefix.
        """
        fields: dict[str, Any] = {**fields_of(content)}
        asked = _with_tail(fields.get("input"), body.get("input"), parts.tail) if parts.tail else None
        given = body.get("instructions")
        if parts.page and isinstance(given, str | None):
            fields["instructions"] = f"{given}\n\n{parts.page}" if given else parts.page
        elif asked is None:
            return None
        return bytes(encode(fields if asked is None else {**fields, "input": asked}))

    def answer_in(self, document: Body) -> Answer | None:
        """The text of the output messages."""
        if document.get("status") not in _ENDED:
            return None
        messages = [each for each in objects_in(document.get("output")) if each.get("type") == "message"]
        text = "\n".join(filter(None, (texts_in(each.get("content"), _TEXT) for each in messages)))
        response_id = document.get("id")
        return Answer(text or None, response_id if isinstance(response_id, str) else None)

    def answer_in_events(self, events: Iterable[Mapping[str, Any]]) -> Answer | None:
        """The answer in the last event, which has the whole response."""
        ended = [
            event for event in events if event.get("type") in ("response.completed", "response.incomplete")
        ]
        document = ended[-1].get("response") if ended else None
        return self.answer_in(document) if isinstance(document, dict) else None


def _with_tail(raw: Any, given: object, tail: str) -> list[Raw] | None:
    """The input with a tail after the newest message of the user; `None` if there is none."""
    added = encode({"type": "message", "role": "developer", "content": tail})
    if isinstance(given, str):
        return [encode({"type": "message", "role": "user", "content": raw}), added]
    newest = newest_user(objects_in(given))
    if newest is None:
        return None
    items = elements_of(raw)
    return [*items[: newest + 1], added, *items[newest + 1 :]]
