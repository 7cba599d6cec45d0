"""Content parts: texts become the content, and every other part becomes an attachment without its data."""

import base64
import hashlib
import json
from typing import Any

import pytest

from recollect import Conversation, Message
from recollect.testing.contract import in_event_loop

from ..databases import Place

PIXELS = bytes(range(256)) * 40
DATA_URL = f"data:image/png;base64,{base64.b64encode(PIXELS).decode()}"
LINK = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png?sig=1", "detail": "low"}}
REFERENCE = {"bytes": len(PIXELS), "sha256": hashlib.sha256(PIXELS).hexdigest()}


def message_of(*parts: Any) -> Message:
    return Conversation("agent", "user", [{"role": "user", "content": list(parts)}]).messages[0]


def test_texts_of_every_provider_become_the_content() -> None:
    message = message_of(
        {"type": "text", "text": "I have a cat."},
        {"type": "input_text", "text": "Her name is Pixel."},
        {"type": "output_text", "text": "How nice!", "annotations": []},
    )
    assert message.content == "I have a cat.\nHer name is Pixel.\nHow nice!"
    assert message.attachments == ()


def test_a_part_that_is_small_is_kept_as_it_is() -> None:
    message = message_of({"type": "text", "text": "My cat:"}, LINK, {"type": "input_file", "file_id": "f-1"})
    assert message.content == "My cat:"
    assert message.attachments == (
        {**LINK, "part_index": 1},
        {"type": "input_file", "file_id": "f-1", "part_index": 2},
    )


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (
            {"type": "image_url", "image_url": {"url": DATA_URL}},
            {"image_url": {"url": {"media_type": "image/png", **REFERENCE}}},
        ),
        (
            {"type": "input_image", "image_url": DATA_URL},
            {"image_url": {"media_type": "image/png", **REFERENCE}},
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": DATA_URL.partition(",")[2]}},
            {"source": {"type": "base64", "data": REFERENCE}},
        ),
        (
            {"type": "note", "data": "data:,small%20text"},
            {
                "data": {
                    "media_type": "text/plain",
                    "bytes": 10,
                    "sha256": hashlib.sha256(b"small text").hexdigest(),
                }
            },
        ),
    ],
)
def test_inline_data_is_replaced_by_an_exact_reference(part: dict[str, Any], kept: dict[str, Any]) -> None:
    (attachment,) = message_of({"type": "text", "text": "Look"}, part).attachments
    assert attachment == {"type": part["type"], "part_index": 1, **kept}
    assert len(json.dumps(attachment)) < 400


def test_a_part_that_is_large_in_any_other_way_is_one_reference() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    wide = {str(number): "y" * 1000 for number in range(1000)}
    for part in ({"type": "blob", "value": deep}, {"type": "blob", "value": wide}):
        whole = json.dumps(part, sort_keys=True, separators=(",", ":")).encode()
        (attachment,) = message_of({"type": "text", "text": "Look"}, part).attachments
        assert attachment == {
            "type": "blob",
            "part_index": 1,
            "bytes": len(whole),
            "sha256": hashlib.sha256(whole).hexdigest(),
        }


def test_a_message_without_text_says_what_it_has() -> None:
    assert message_of(LINK, {"type": "input_audio", "input_audio": {"data": "AAAA"}}).content == (
        "[image_url] [input_audio]"
    )


def endless() -> dict[str, Any]:
    part: dict[str, Any] = {"type": "blob"}
    part["self"] = part
    return part


@pytest.mark.parametrize(
    ("parts", "kind", "told"),
    [
        ([], ValueError, "content of message 0 must have 1 to 100 parts"),
        ([LINK] * 101, ValueError, "content of message 0 must have 1 to 100 parts"),
        (["text"], TypeError, "part 0 of message 0 must be an object, not str"),
        ([{"text": "x"}], ValueError, "part 0 of message 0 must have a type, such as text or image_url"),
        ([{"type": "a\n"}], ValueError, "part 0 of message 0 must have a type"),
        ([LINK, {"type": "text"}], TypeError, "part 1 of message 0 must have its text as a string"),
        ([endless()], TypeError, "part 0 of message 0 must be a JSON object"),
        ([{"type": "blob", "value": {1}}], TypeError, "part 0 of message 0 must be a JSON object"),
        ([{"type": "text", "text": " "}], ValueError, "content of message 0 must not be empty"),
    ],
)
def test_parts_that_are_none_are_refused(parts: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{told}"):
        message_of(*parts)


@in_event_loop
async def test_names_roles_and_attachments_come_back_and_are_found(place: Place) -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "name": "Maria", "content": [{"type": "text", "text": "My boat is blue."}, LINK]},
        {"role": "tool", "name": "weather", "content": "Storm over Lisbon."},
    ]
    async with place.open() as store:
        made = await store.record_conversation("agent", "user", said[:1], conversation_id="c")
        added = await store.append_messages("c", said[1:])
        stored = await store.get_conversation("c")
        assert stored is not None
        assert stored.messages == (*made.messages, *added)
        first, second = stored.messages
        assert (first.name, first.content, first.speaker) == ("Maria", "My boat is blue.", "Maria")
        assert first.attachments == ({**LINK, "part_index": 1},)
        assert (second.role, second.name) == ("tool", "weather")
        assert Conversation.from_dict(stored.to_dict()).messages == stored.messages
        search = await store.search_conversations("storm", "agent", "user")
        assert search.hits[0].message == second
        by_name = await store.search_conversations("What did Maria say about the boat?", "agent", "user")
        assert by_name.hits[0].parts["speaker"] > 0
        assert "Maria: " in (await store.recall("the boat", "agent", "user")).text


@in_event_loop
async def test_the_same_words_of_another_speaker_are_another_message(file_place: Place) -> None:
    said = {"role": "user", "content": "I sail.", "message_id": "m"}
    async with file_place.open() as store:
        await store.record_conversation("agent", "user", [said], conversation_id="c")
        with pytest.raises(Exception, match="another conversation has this conversation_id"):
            await store.record_conversation("agent", "user", [{**said, "name": "Bo"}], conversation_id="c")
        with pytest.raises(Exception, match="other messages have these message_ids"):
            await store.append_messages("c", [{**said, "name": "Bo"}])
