"""Keys: only the whole text of a valid one opens anything, and no text of one is stored or logged."""

import logging
import sqlite3
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.server.access.keys import Key, KeyStore
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql
from .places import Place


def changed_last(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


@in_event_loop
async def test_a_key_opens_what_it_was_made_for(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        made, text = await keys.create("acme", "write", name="laptop")
        found = await keys.verify(text)
    assert found is not None
    assert (found.key_id, found.tenant, found.scope, found.name) == (made.key_id, "acme", "write", "laptop")
    assert text.startswith(f"rk_{made.key_id}_")
    assert made.created_at.tzinfo is UTC


@in_event_loop
async def test_nothing_but_the_whole_text_opens_it(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        made, text = await keys.create("acme", "admin")
        _, others = await keys.create("other", "admin")
        prefix, secret = f"rk_{made.key_id}_", text.rpartition("_")[2]
        wrong = [
            "",
            "rk_",
            prefix,
            secret,
            text[:-1],
            text + "0",
            text + "\n",
            " " + text,
            text.upper(),
            changed_last(text),
            prefix + others.rpartition("_")[2],
            others.rpartition("_")[0] + "_" + secret,
            f"rk_{'0' * 32}_{secret}",
            prefix + "0" * 64,
            prefix + "٣" * 64,
            prefix + "\ud800" * 64,
            prefix + "\0" * 64,
            text + "a" * 1_000_000,
        ]
        assert [given for given in wrong if await keys.verify(given) is not None] == []
        assert await keys.verify(text) is not None


@in_event_loop
async def test_a_wrong_secret_is_wrong_also_right_after_the_right_one(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        _, text = await keys.create("acme", "read")
        for _ in range(2):
            assert await keys.verify(text) is not None
            assert await keys.verify(changed_last(text)) is None


@in_event_loop
async def test_each_tenant_has_its_own_keys(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        names = ("a", "a:b", "ä'\"%", "t" * 200)
        texts = {tenant: (await keys.create(tenant, "read"))[1] for tenant in names}
        for tenant, text in texts.items():
            found = await keys.verify(text)
            assert found is not None
            assert found.tenant == tenant
            assert [key.tenant for key in await keys.list(tenant)] == [tenant]
        assert [key.tenant for key in await keys.list()] == list(texts)


@in_event_loop
async def test_a_revoked_key_opens_nothing_at_once_and_for_good(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        made, text = await keys.create("acme", "read")
        _, kept = await keys.create("acme", "read")
        assert await keys.verify(text) is not None
        revoked = await keys.revoke(made.key_id)
        assert revoked is not None
        assert revoked.revoked_at is not None
        assert await keys.verify(text) is None
        assert await keys.verify(kept) is not None
        assert await keys.revoke(made.key_id) == revoked, "the first time stands"


@in_event_loop
async def test_there_is_nothing_to_revoke_under_another_id(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        _, text = await keys.create("acme", "read")
        for unknown in ("", "0" * 32, text, "%", "\0", "\ud800", "ä" * 32):
            assert await keys.revoke(unknown) is None
        assert await keys.verify(text) is not None


@in_event_loop
async def test_what_another_process_revoked_opens_nothing_here(shared_place: Place) -> None:
    async with shared_place.open(KeyStore) as keys, shared_place.open(KeyStore) as others:
        made, text = await keys.create("acme", "read")
        assert await others.verify(text) is not None
        await keys.revoke(made.key_id)
    async with shared_place.open(KeyStore) as keys:
        assert await keys.verify(text) is None


@in_event_loop
async def test_an_expired_key_opens_nothing_though_it_was_just_read(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        made, text = await keys.create("acme", "read", ttl=timedelta(hours=1))
        assert made.expires_at == made.created_at + timedelta(hours=1)
        assert await keys.verify(text) is not None
        assert made.is_valid(made.expires_at - timedelta(microseconds=1))
        assert not made.is_valid(made.expires_at)


@in_event_loop
async def test_the_expiry_is_checked_on_each_call(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    async with KeyStore(path) as keys:
        _, text = await keys.create("acme", "read", ttl=timedelta(hours=1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE api_keys SET expires_at = '2020-01-01T00:00:00.000000Z'")
    async with KeyStore(path) as keys:
        assert [await keys.verify(text) for _ in range(2)] == [None, None]


@in_event_loop
async def test_it_is_known_whether_a_key_was_ever_made(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        assert not await keys.any()
        made, _ = await keys.create("acme", "read")
        assert await keys.any()
        await keys.revoke(made.key_id)
        assert await keys.any()


@in_event_loop
async def test_revoking_the_last_key_opens_nothing_after_a_restart_either(shared_place: Place) -> None:
    async with shared_place.open(KeyStore) as keys:
        made, _ = await keys.create("acme", "read")
        await keys.revoke(made.key_id)
    async with shared_place.open(KeyStore) as keys:
        assert await keys.any()


@in_event_loop
async def test_the_use_of_a_key_is_noted_once_in_a_while(place: Place) -> None:
    async with place.open(KeyStore) as keys:
        made, text = await keys.create("acme", "read")
        assert made.last_used_at is None
        assert await keys.verify(changed_last(text)) is None
        (unused,) = await keys.list()
        assert unused.last_used_at is None, "a wrong secret is no use of it"
        first = await keys.verify(text)
        again = await keys.verify(text)
        (listed,) = await keys.list()
    assert first is not None
    assert first.last_used_at is not None
    assert first == again == listed


@pytest.mark.parametrize(
    ("tenant", "scope", "options"),
    [
        ("", "read", {}),
        ("a\0", "read", {}),
        ("t" * 201, "read", {}),
        ("a", "owner", {}),
        ("a", None, {}),
        ("a", "read", {"name": "\0"}),
        ("a", "read", {"name": "n" * 201}),
        ("a", "read", {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}),
        ("a", "read", {"expires_at": datetime(2099, 1, 1)}),  # noqa: DTZ001
        ("a", "read", {"ttl": timedelta(0)}),
        ("a", "read", {"ttl": timedelta.max}),
        ("a", "read", {"ttl": timedelta(1), "expires_at": datetime(2099, 1, 1, tzinfo=UTC)}),
    ],
)
@in_event_loop
async def test_what_cannot_be_a_key_is_refused(tenant: str, scope: Any, options: dict[str, Any]) -> None:
    async with KeyStore(":memory:") as keys:
        with pytest.raises(ValueError, match=r"tenant|scope|name|expire|ttl"):
            await keys.create(tenant, scope, **options)
        assert not await keys.any()


@in_event_loop
async def test_the_secret_is_nowhere_but_with_its_owner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "service.db"
    async with KeyStore(path) as keys:
        made, text = await keys.create("acme", "admin", name="n")
        secret = text.rpartition("_")[2]
        assert await keys.verify(text) is not None
        assert await keys.verify(changed_last(text)) is None
        await keys.revoke(made.key_id)
        told = repr([asdict(key) for key in await keys.list()]) + repr(made)
    with closing(sqlite3.connect(path)) as connection:
        dumped = "\n".join(connection.iterdump())
    assert made.key_id in dumped
    for place in (dumped, told, caplog.text):
        assert secret not in place


@in_event_loop
async def test_a_flood_of_invented_ids_is_not_remembered_without_end() -> None:
    async with KeyStore(":memory:") as keys:
        _, text = await keys.create("acme", "read")
        assert await keys.verify(text) is not None
        for number in range(1100):
            assert await keys.verify(f"rk_{number:032x}_{'0' * 64}") is None
        assert len(keys._unknown) == 1000
        assert len(keys._known) == 1


@in_event_loop
async def test_a_key_that_cannot_be_noted_as_used_opens_all_the_same(
    service_postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with KeyStore(service_postgres) as keys:
        _, text = await keys.create("acme", "read")
        body = "$$ BEGIN RAISE EXCEPTION 'no'; END $$"
        sql(service_postgres, f"CREATE FUNCTION refuse() RETURNS trigger AS {body} LANGUAGE plpgsql")
        event = "BEFORE UPDATE ON api_keys FOR EACH ROW"
        sql(service_postgres, f"CREATE TRIGGER refuse {event} EXECUTE FUNCTION refuse()")
        try:
            found = await keys.verify(text)
        finally:
            sql(service_postgres, "DROP TRIGGER refuse ON api_keys")
            sql(service_postgres, "DROP FUNCTION refuse")
    assert isinstance(found, Key)
    assert "could not be recorded" in caplog.text
    assert text.rpartition("_")[2] not in caplog.text
