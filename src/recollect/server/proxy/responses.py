"""OpenAI's Responses API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .exact_json import elements_of, encode, fields_of
from .values import Answer, Body, Place, Said, Thread, newest_user, objects_in, texts_in

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

    def add_memories(self, content: bytes, body: Body, block: str, place: Place) -> bytes | None:
        """Add the block before the newest message, or to the instructions if there is no earlier answer.

        With a conversation of the provider it goes to the instructions, too: these are not stored there.
        """
        items, fields = objects_in(body.get("input")), fields_of(content)
        newest = newest_user(items)
        if place == "late" and newest is not None and _has_answer(items[:newest]):
            raw = elements_of(fields["input"])
            raw.insert(newest, encode({"type": "message", "role": "developer", "content": block}))
            return bytes(encode({**fields, "input": raw}))
        given = body.get("instructions")
        if given is not None and not isinstance(given, str):
            return None
        instructions = f"{given}\n\n{block}" if given else block
        return bytes(encode({**fields, "instructions": instructions}))

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


def _has_answer(items: Sequence[Mapping[str, Any]]) -> bool:
    return any(item.get("role") == "assistant" or "call_id" in item for item in items)
