"""Items of the store have owners: they are exported, imported again and erased with the right user alone."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from recollect import MemoryStore
from recollect.cli import main
from recollect.errors import ConflictError, ImportFormatError, InvalidValueError
from recollect.integrations.langgraph import Store, import_items
from recollect.integrations.langgraph.store.owners import owner_in
from recollect.testing.contract import in_event_loop

from .graphs import Chat, ask, config_of

OWNERS = [("notes", "{user_id}"), ("*", "of", "{user_id}")]


@pytest.mark.parametrize(
    ("namespace", "owner"),
    [
        (("notes", "ada"), "ada"),
        (("notes", "ada", "deep"), "ada"),
        (("notes", "a%2Eb%25"), "a.b%"),
        (("any", "of", "ben"), "ben"),
        (("notes",), None),
        (("other", "ada"), None),
    ],
)
def test_a_pattern_says_where_the_user_is(namespace: tuple[str, ...], owner: str | None) -> None:
    assert owner_in(namespace, OWNERS) == owner


@pytest.mark.parametrize("pattern", [("notes",), ("{user_id}", "{user_id}"), "notes"])
def test_a_pattern_without_one_user_is_refused(pattern: Any) -> None:
    with pytest.raises(InvalidValueError, match="user_id"):
        Store(":memory:", embedder=None, owners=[pattern])


@in_event_loop
async def test_a_user_called_like_a_label_takes_nothing_of_others_along(shared_url: str) -> None:
    ada = uuid4().hex
    async with (
        Store(shared_url, embedder=None, create_tables=True, owners=OWNERS) as items,
        MemoryStore(shared_url, workers=0, embedder=None, create_tables=True) as store,
    ):
        await items.aput(("notes", ada), "diet", {"text": "no meat"})
        await items.aput(("notes", "notes"), ada, {"text": "of the user called notes"})
        await items.aput((ada, "unknown"), "1", {"text": "nobody said whose this is"})
        assert (await store.erase_user("notes")).counts["store_items"] == 1
        assert await items.aget(("notes", ada), "diet") is not None
        assert await items.aget(("notes", "notes"), ada) is None
        assert (await store.erase_user(ada)).counts["store_items"] == 1
        assert await items.aget((ada, "unknown"), "1") is not None


@in_event_loop
async def test_an_item_of_a_run_belongs_to_its_user_if_it_names_them(shared_url: str) -> None:
    user = f"ada.{uuid4().hex}"
    label = user.replace(".", "%2E")

    async def remember(state: Chat, runtime: Runtime[None]) -> dict[str, Any]:  # noqa: ARG001
        assert isinstance(runtime.store, BaseStore)
        await runtime.store.aput((label, "facts"), "1", {"text": "in the namespace"})
        await runtime.store.aput(("users",), user, {"text": "as the key"})
        await runtime.store.aput((label + "x", "shared"), "1", {"text": "not theirs"})
        return {}

    async with (
        Store(shared_url, embedder=None, create_tables=True) as items,
        MemoryStore(shared_url, workers=0, embedder=None, create_tables=True) as store,
    ):
        builder = StateGraph(Chat)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        await builder.compile(store=items).ainvoke(ask("a"), config_of("t", user_id=user))
        exported = await store.export_user(user)
        assert [each["value"]["text"] for each in exported["store_items"]] == [
            "in the namespace",
            "as the key",
        ]
        assert (await store.export_user(user, agent_id="assistant"))["store_items"] == []
        assert (await store.erase_user(user)).counts["store_items"] == 2
        assert await items.aget((label + "x", "shared"), "1") is not None


def test_the_synchronous_store_knows_the_run_too(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"

    def remember(state: Chat, runtime: Runtime[None]) -> dict[str, Any]:  # noqa: ARG001
        assert isinstance(runtime.store, BaseStore)
        runtime.store.put(("ada", "facts"), "1", {"text": "a"})
        return {}

    with Store(path, embedder=None) as items:
        builder = StateGraph(Chat)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        builder.compile(store=items).invoke(ask("a"), config_of("t", user_id="ada"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT user_id FROM langgraph_store_items").fetchall() == [("ada",)]


@in_event_loop
async def test_items_without_an_owner_are_not_erased_until_assign_owners_gives_them_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    async with Store(path, embedder=None) as items:
        for name in ("ada", "ben"):
            await items.aput(("notes", name), "1", {"text": name})
    async with MemoryStore(path, workers=0, embedder=None) as store:
        assert (await store.export_user("ada"))["store_items"] == []
        assert "store_items" not in (await store.erase_user("ada")).counts
    async with (
        Store(path, embedder=None, owners=OWNERS) as items,
        MemoryStore(path, workers=0, embedder=None) as store,
    ):
        assert await items.assign_owners() == 2
        assert await items.assign_owners() == 0
        assert (await store.erase_user("ada")).counts["store_items"] == 1
        assert [item.value for item in await items.asearch(())] == [{"text": "ben"}]


@in_event_loop
async def test_an_export_of_a_tenant_has_the_items_of_all_and_of_nobody_once(shared_url: str) -> None:
    ada, ben = uuid4().hex, uuid4().hex
    async with (
        Store(shared_url, embedder=None, create_tables=True, owners=OWNERS) as items,
        MemoryStore(shared_url, workers=0, embedder=None, create_tables=True, all_tenants=True) as store,
    ):
        await store.record_conversation("assistant", ben, [{"role": "user", "content": "Hello."}])
        for namespace in (("notes", ada), ("notes", ben), (ada, "unknown")):
            await items.aput(namespace, "1", {"of": [ada, ben]})

        async def owners(tenant: str, agent_id: str | None = None) -> list[str | None]:
            lines = store.for_tenant(tenant).export_tenant_lines(agent_id=agent_id)
            found = [line["data"] async for line in lines if line.get("kind") == "store_items"]
            return [each["user_id"] for each in found if each["value"] == {"of": [ada, ben]}]

        assert sorted(map(str, await owners("default"))) == sorted([ada, ben, "None"])
        assert await owners("acme") == []
        assert await owners("default", agent_id="assistant") == []


def test_an_export_has_the_items_and_they_are_imported_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, target = str(tmp_path / "old.db"), str(tmp_path / "new.db"), tmp_path / "ada.json"
    lines, other = tmp_path / "ada.jsonl", str(tmp_path / "other.db")
    with Store(old, embedder=None, owners=OWNERS) as items:
        items.put(("notes", "ada"), "diet", {"text": "never eats meat", "odd": "\ud800"}, ttl=60)
        items.put(("notes", "ada"), "pet", {"text": "a dog called Rex"})
        items.put(("notes", "ben"), "1", {"text": "of another user"})
        before = {item.key: item for item in items.search(("notes", "ada"))}
    assert main(["export", "--user", "ada", "--url", old, "--output", str(target), "--json"]) == 0
    assert main(["export", "--user", "ada", "--url", old, "--output", str(lines)]) == 0
    assert "another user" not in target.read_text()
    for count in (2, 0):  # a second import finds them there
        assert main(["import", str(target), "--url", new, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["store_items"] == count
    assert main(["import", str(lines), "--url", other, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == {"store_items": 2}
    with Store(other, embedder=None) as items:
        assert {item.key for item in items.search(("notes", "ada"))} == {"diet", "pet"}
    with Store(new) as items:
        found = {item.key: item for item in items.search(("notes", "ada"))}
        assert {key: (item.value, item.created_at) for key, item in found.items()} == {
            key: (item.value, item.created_at) for key, item in before.items()
        }
        assert items.search(("notes",), query="Is she a vegetarian?", limit=1)[0].key == "diet"
    assert main(["erase", "--user", "ada", "--url", new, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["store_items"] == 2
    assert main(["import", str(target), "--url", new, "--tenant", "acme", "--json"]) == 0
    assert "store_items" not in json.loads(capsys.readouterr().out)


@in_event_loop
async def test_an_import_of_items_is_whole_or_refused() -> None:
    good: dict[str, Any] = {
        "namespace": ["notes", "ada"],
        "key": "1",
        "value": {"a": 1},
        "created_at": "2026-11-01T10:00:00Z",
        "updated_at": "2026-11-01T10:00:00Z",
    }
    bad = [
        *({**good, "namespace": each} for each in ("notes", None, [1], ["a.b"], ["x" * 3000])),
        *({**good, "key": each} for each in (None, "", 5, "k" * 2000)),
        *({**good, "value": each} for each in (None, [], "text")),
        *({**good, "created_at": each} for each in (None, "yesterday", 5)),
        *({**good, "ttl_minutes": each} for each in ("1", True, -1)),
        "no object",
    ]
    async with Store(":memory:", embedder=None) as items:
        for each in bad:
            with pytest.raises(ImportFormatError, match=r"store_items\[1\]"):
                await import_items({"user_id": "ada", "store_items": [good, each]}, items)
        with pytest.raises(ImportFormatError):
            await import_items({"store_items": "no list"}, items)
        assert await items.asearch(()) == []
        expired = {**good, "key": "2", "expires_at": "2026-11-01T10:01:00Z"}
        assert await import_items({"user_id": "ada", "store_items": [good, expired]}, items) == 1
        with pytest.raises(ConflictError):
            await import_items({"user_id": "ada", "store_items": [{**good, "value": {"a": 2}}]}, items)
