"""The provider server speaks the Conversations API as the real client expects it."""

from typing import Any

import openai
import pytest
from openai.types.conversations import ConversationItemList

from recollect.testing.contract import in_event_loop, message
from recollect.testing.providers import ProviderServer

from .clients import client_of

USER = {"role": "user", "content": "hi"}


def dumped(page: Any) -> list[dict[str, Any]]:
    return [item.model_dump(exclude_unset=True) for item in page.data]


# --- conversations ---


@in_event_loop
async def test_a_conversation_lives_from_its_creation_to_its_deletion(server: ProviderServer) -> None:
    async with client_of(server) as client:
        created = await client.conversations.create(metadata={"topic": "a"})
        assert created.id.startswith("conv_")
        assert (created.object, created.metadata) == ("conversation", {"topic": "a"})
        assert await client.conversations.retrieve(created.id) == created
        updated = await client.conversations.update(created.id, metadata={"topic": "b"})
        assert updated.metadata == {"topic": "b"}
        assert (await client.conversations.retrieve(created.id)).metadata == {"topic": "b"}
        deleted = await client.conversations.delete(created.id)
        assert deleted.to_dict() == {"id": created.id, "object": "conversation.deleted", "deleted": True}
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(created.id)


@in_event_loop
async def test_a_conversation_can_start_with_items(server: ProviderServer) -> None:
    async with client_of(server) as client:
        created = await client.conversations.create(items=[message(n) for n in range(20)])
        assert len(server.conversations.items_of(created.id)) == 20
        with pytest.raises(openai.BadRequestError, match="at most 20"):
            await client.conversations.create(items=[message(n) for n in range(21)])
        assert len(server.conversations.ids()) == 1


@pytest.mark.parametrize("ask", ["retrieve", "update", "delete", "list", "create", "item", "delete item"])
@in_event_loop
async def test_an_unknown_conversation_is_not_found(server: ProviderServer, ask: str) -> None:
    async with client_of(server) as client:
        conversations, items = client.conversations, client.conversations.items
        asks: dict[str, Any] = {
            "retrieve": lambda: conversations.retrieve("conv_x"),
            "update": lambda: conversations.update("conv_x", metadata={}),
            "delete": lambda: conversations.delete("conv_x"),
            "list": lambda: items.list("conv_x"),
            "create": lambda: items.create("conv_x", items=[USER]),
            "item": lambda: items.retrieve("msg_x", conversation_id="conv_x"),
            "delete item": lambda: items.delete("msg_x", conversation_id="conv_x"),
        }
        with pytest.raises(openai.NotFoundError) as caught:
            await asks[ask]()
    assert caught.value.body == {
        "message": "Conversation with id 'conv_x' not found.",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }


@pytest.mark.parametrize("key", ["wrong", "Test-Key"])
@in_event_loop
async def test_a_wrong_key_is_refused(server: ProviderServer, key: str) -> None:
    async with client_of(server, api_key=key) as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.conversations.create()
    assert caught.value.code == "invalid_api_key"
    assert server.conversations.ids() == []


@in_event_loop
async def test_a_missing_key_and_an_unknown_path_are_refused(server: ProviderServer) -> None:
    async with client_of(server) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.conversations.create(extra_headers={"Authorization": "Basic dGVzdA=="})
        with pytest.raises(openai.NotFoundError, match="Invalid URL"):
            await client.files.list()
        with pytest.raises(openai.BadRequestError, match="JSON"):
            await client.post(
                "/conversations", cast_to=object, content=b"{no", options={"headers": {"Content-Type": "x/y"}}
            )


# --- items ---


@in_event_loop
async def test_items_get_ids_statuses_and_parts(server: ProviderServer) -> None:
    given: list[Any] = [
        USER,
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
        {"role": "assistant", "content": "hello"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}},
    ]
    async with client_of(server) as client:
        conversation = await client.conversations.create()
        stored = await client.conversations.items.create(conversation.id, items=given)
        listed = await client.conversations.items.list(conversation.id, order="asc")
    assert isinstance(stored, ConversationItemList)
    assert dumped(stored) == dumped(listed)
    prefixes = [item["id"].split("_")[0] for item in dumped(stored)]
    assert prefixes == ["msg", "msg", "msg", "fc", "fco", "rs", "ws"]
    assert [item.get("status") for item in dumped(stored)] == ["completed"] * 5 + [None, "completed"]
    assert dumped(stored)[0]["content"] == [{"type": "input_text", "text": "hi"}]
    assert dumped(stored)[2]["content"] == [{"type": "output_text", "text": "hello", "annotations": []}]
    assert [item["id"] for item in dumped(stored)[5:]] == ["rs_1", "ws_1"], "ids that were given stay"


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ("text", "items[0]"),
        ({}, "items[0].role"),
        ({"role": "user"}, "items[0].content"),
        ({"role": "nobody", "content": "x"}, "items[0].role"),
        ({"role": "user", "content": 5}, "items[0].content"),
        ({"role": "user", "content": [{"type": "output_text", "text": "x"}]}, "items[0].content[0]"),
        ({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, "items[0].content[0]"),
        ({"role": "user", "content": "x", "provider_data": {}}, "items[0].provider_data"),
        ({"role": "user", "content": "x", "id": "fc_1"}, "items[0].id"),
        ({"type": "of_the_future"}, "items[0]"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "items[0].call_id"),
        ({"type": "function_call_output", "call_id": "c"}, "items[0].output"),
        ({"type": "reasoning", "summary": []}, "items[0].id"),
        ({"type": "web_search_call"}, "items[0].id"),
    ],
    ids=str,
)
@in_event_loop
async def test_a_bad_item_is_refused_with_its_batch(server: ProviderServer, item: Any, param: str) -> None:
    server.conversations.add("conv_1")
    async with client_of(server) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.conversations.items.create("conv_1", items=[item, USER])
    assert caught.value.param == param
    assert server.conversations.items_of("conv_1") == []


@pytest.mark.parametrize(("count", "accepted"), [(0, False), (1, True), (20, True), (21, False)])
@in_event_loop
async def test_a_request_takes_one_to_twenty_items(
    server: ProviderServer, count: int, accepted: bool
) -> None:
    server.conversations.add("conv_1")
    async with client_of(server) as client:
        request = client.conversations.items.create("conv_1", items=[message(n) for n in range(count)])
        if accepted:
            assert len((await request).data) == count
        else:
            with pytest.raises(openai.BadRequestError, match="items"):
                await request
    assert len(server.conversations.items_of("conv_1")) == count * accepted


@in_event_loop
async def test_an_id_is_stored_once(server: ProviderServer) -> None:
    server.conversations.add("conv_1")
    thought: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
    async with client_of(server) as client:
        await client.conversations.items.create("conv_1", items=[thought])
        with pytest.raises(openai.BadRequestError, match="Duplicate item"):
            await client.conversations.items.create("conv_1", items=[USER, thought])
    assert len(server.conversations.items_of("conv_1")) == 1


@in_event_loop
async def test_one_item_can_be_read_and_deleted(server: ProviderServer) -> None:
    server.conversations.add("conv_1")
    async with client_of(server) as client:
        items = client.conversations.items
        created = await items.create("conv_1", items=[USER, USER])
        first = created.data[0]
        assert await items.retrieve(str(first.id), conversation_id="conv_1") == first
        assert (await items.delete(str(first.id), conversation_id="conv_1")).id == "conv_1"
        assert [item["id"] for item in server.conversations.items_of("conv_1")] == [created.data[1].id]
        for ask in (items.retrieve, items.delete):
            with pytest.raises(openai.NotFoundError):
                await ask(str(first.id), conversation_id="conv_1")


# --- pages ---


async def fill(server: ProviderServer, client: Any, count: int) -> None:
    server.conversations.add("conv_1")
    for start in range(0, count, 20):
        batch: Any = [message(n) for n in range(start, min(start + 20, count))]
        await client.conversations.items.create("conv_1", items=batch)


def numbers(page: Any) -> list[int]:
    return [int(item.content[0].text) for item in page.data]


@in_event_loop
async def test_lists_are_pages_of_twenty_newest_first_unless_asked_otherwise(server: ProviderServer) -> None:
    async with client_of(server) as client:
        await fill(server, client, 45)
        items = client.conversations.items
        page = await items.list("conv_1")
        assert numbers(page) == list(range(44, 24, -1))
        assert (page.has_more, page.last_id) == (True, page.data[-1].id)
        assert numbers(await page.get_next_page()) == list(range(24, 4, -1))
        assert numbers(await items.list("conv_1", order="asc", limit=3)) == [0, 1, 2]
        whole = await items.list("conv_1", order="asc", limit=100)
        assert (numbers(whole), whole.has_more) == (list(range(45)), False)
        last = await items.list("conv_1", order="asc", limit=45)
        assert last.has_more is False
        assert [int(item.content[0].text) async for item in items.list("conv_1", order="asc")] == list(
            range(45)
        )


@in_event_loop
async def test_an_empty_list_has_no_ids(server: ProviderServer) -> None:
    server.conversations.add("conv_1")
    async with client_of(server) as client:
        raw = await client.conversations.items.with_raw_response.list("conv_1")
    assert raw.http_response.json() == {
        "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 101}, {"limit": -1}, {"order": "up"}, {"after": "msg_x"}], ids=str
)
@in_event_loop
async def test_a_bad_query_is_refused(server: ProviderServer, query: dict[str, Any]) -> None:
    server.conversations.add("conv_1")
    async with client_of(server) as client:
        with pytest.raises(openai.BadRequestError):
            await client.conversations.items.list("conv_1", **query)


@in_event_loop
async def test_some_fields_are_given_only_if_included(server: ProviderServer) -> None:
    server.conversations.add("conv_1")
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
    given: Any = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"role": "user", "content": [picture]},
    ]
    async with client_of(server) as client:
        items = client.conversations.items
        await items.create("conv_1", items=given)
        thought, image = dumped(await items.list("conv_1", order="asc"))
        assert "encrypted_content" not in thought
        assert image["content"] == [{"type": "input_image", "detail": "auto"}]
        thought, image = dumped(
            await items.list(
                "conv_1",
                order="asc",
                include=["reasoning.encrypted_content", "message.input_image.image_url"],
            )
        )
    assert thought["encrypted_content"] == "gAAA"
    assert image["content"] == [{**picture, "detail": "auto"}]
