"""A request that is sent again makes nothing again."""

import asyncio
import logging
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ConnectionLostError, InvalidTypeError, InvalidValueError, TransientError
from recollect.ids import new_hex, new_id, time_ordered_id
from recollect.server.database.claims import ClaimRow, decide
from recollect.server.idempotency import Idempotency, Ids, check_key, new_seed
from recollect.server.problems import Problem
from recollect.testing.contract import in_event_loop

from .access.places import KINDS, Place, database_on, place_of

PLACE = "POST /v1/conversations"
Make = Callable[[Ids], Awaitable[dict[str, Any]]]


@pytest.fixture(scope="session")
def service_postgres(postgres_url: str) -> Iterator[str]:
    with database_on(postgres_url) as url:
        yield url


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, request, tmp_path)


@pytest.fixture(params=["file", "asyncpg"])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, request, tmp_path)


class Maker:
    """Makes a conversation, and remembers how often and with which ids."""

    def __init__(self, *failures: BaseException) -> None:
        self.made: list[str] = []
        self.failures = list(failures)

    async def __call__(self, ids: Ids) -> dict[str, Any]:
        self.made.append(ids("conversation"))
        if self.failures:
            raise self.failures.pop(0)
        return {"conversation_id": ids("conversation")}


async def refused(store: Idempotency, *request: Any) -> str:
    with pytest.raises(Problem) as raised:
        await store.once(*request, Maker())
    return raised.value.code


@in_event_loop
async def test_the_same_request_gets_what_the_first_made(place: Place) -> None:
    make = Maker()
    async with place.open(Idempotency) as store:
        first = await store.once("acme", PLACE, "key", b"{}", make)
        again = await store.once("acme", PLACE, "key", b"{}", make)
    assert first == ({"conversation_id": make.made[0]}, False)
    assert again == ({"conversation_id": make.made[0]}, True)
    assert len(make.made) == 1


@in_event_loop
async def test_it_is_remembered_by_every_instance(shared_place: Place) -> None:
    make = Maker()
    async with shared_place.open(Idempotency) as store:
        first, _ = await store.once("acme", PLACE, "key", b"{}", make)
    async with shared_place.open(Idempotency) as store:
        assert await store.once("acme", PLACE, "key", b"{}", make) == (first, True)


@in_event_loop
async def test_tenants_routes_and_keys_are_apart(place: Place) -> None:
    make = Maker()
    requests = [("a", "x", "1"), ("b", "x", "1"), ("a", "y", "1"), ("a", "x", "2"), ("a", 'x","1', "1")]
    async with place.open(Idempotency) as store:
        told = [await store.once(*request, b"{}", make) for request in requests]
    assert [is_replay for _, is_replay in told] == [False] * 5
    assert len(set(make.made)) == 5


@in_event_loop
async def test_without_a_key_each_request_is_a_new_one(place: Place) -> None:
    make = Maker()
    async with place.open(Idempotency) as store:
        told = [await store.once("acme", PLACE, None, b"{}", make) for _ in range(2)]
    assert [is_replay for _, is_replay in told] == [False, False]
    assert len(set(make.made)) == 2


@in_event_loop
async def test_a_key_with_another_body_is_refused(place: Place) -> None:
    async with place.open(Idempotency) as store:
        await store.once("acme", PLACE, "key", b"{}", Maker())
        assert await refused(store, "acme", PLACE, "key", b"{ }") == "idempotency_key_reused"
        _, is_replay = await store.once("acme", PLACE, "key", b"{}", Maker())
        assert is_replay


@in_event_loop
async def test_a_key_whose_request_is_running_is_refused(place: Place) -> None:
    async with place.open(Idempotency) as store:

        async def make(ids: Ids) -> dict[str, Any]:
            assert await refused(store, "acme", PLACE, "key", b"{}") == "idempotency_in_progress"
            assert await refused(store, "acme", PLACE, "key", b"x") == "idempotency_key_reused"
            return {"id": ids("thing")}

        await store.once("acme", PLACE, "key", b"{}", make)


@in_event_loop
async def test_of_many_at_once_one_makes_it(shared_place: Place) -> None:
    make = Maker()
    async with shared_place.open(Idempotency) as one, shared_place.open(Idempotency) as two:
        told = await asyncio.gather(
            *(store.once("acme", PLACE, "key", b"{}", make) for store in [one, two] * 10),
            return_exceptions=True,
        )
    assert len(make.made) == 1
    problems = [outcome for outcome in told if isinstance(outcome, BaseException)]
    assert {getattr(problem, "code", None) for problem in problems} <= {"idempotency_in_progress"}
    answers = [outcome for outcome in told if isinstance(outcome, tuple)]
    assert [is_replay for _, is_replay in answers].count(False) == 1
    assert {made["conversation_id"] for made, _ in answers} == set(make.made)


@pytest.mark.parametrize(
    "failure", [Problem("validation_failed", "no"), InvalidValueError("no"), InvalidTypeError("no")]
)
@in_event_loop
async def test_after_a_refusal_the_key_is_free_also_for_another_body(failure: Exception) -> None:
    async with Idempotency(":memory:") as store:
        with pytest.raises(type(failure)):
            await store.once("acme", PLACE, "key", b"wrong", Maker(failure))
        _, is_replay = await store.once("acme", PLACE, "key", b"right", Maker())
        assert not is_replay


@pytest.mark.parametrize(
    "failure",
    [
        Problem("model_failed", "no"),
        TransientError("no"),
        ConnectionLostError("no"),
        KeyError("a fault"),
        asyncio.CancelledError(),
    ],
)
@in_event_loop
async def test_after_a_fault_the_same_request_goes_on_with_the_same_ids(
    place: Place, failure: BaseException
) -> None:
    make = Maker(failure)
    async with place.open(Idempotency) as store:
        with pytest.raises(type(failure)):
            await store.once("acme", PLACE, "key", b"{}", make)
        assert await refused(store, "acme", PLACE, "key", b"other") == "idempotency_key_reused"
        made, is_replay = await store.once("acme", PLACE, "key", b"{}", make)
    assert not is_replay
    assert make.made == [made["conversation_id"]] * 2


@in_event_loop
async def test_a_refusal_after_a_fault_does_not_free_the_key() -> None:
    make = Maker(ConnectionLostError("it may have been made"), Problem("conflict", "no"))
    async with Idempotency(":memory:") as store:
        for failure in (ConnectionLostError, Problem):
            with pytest.raises(failure):
                await store.once("acme", PLACE, "key", b"{}", make)
        await store.once("acme", PLACE, "key", b"{}", make)
    assert len(make.made) == 3
    assert len(set(make.made)) == 1


@in_event_loop
async def test_the_claim_of_a_process_that_died_is_taken_over_with_its_ids(shared_place: Place) -> None:
    async with shared_place.open(Idempotency, lease=-1) as dead:
        claim = await dead.claim("acme", PLACE, "key", b"{}")  # and nothing more is heard of it
    make = Maker()
    async with shared_place.open(Idempotency) as store:
        assert await refused(store, "acme", PLACE, "key", b"other") == "idempotency_key_reused"
        made, is_replay = await store.once("acme", PLACE, "key", b"{}", make)
    assert not is_replay
    assert made == {"conversation_id": claim.ids("conversation")}


@in_event_loop
async def test_who_lost_a_claim_changes_nothing_any_more(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with place.open(Idempotency, lease=-1) as store:
        late = await store.claim("acme", PLACE, "key", b"{}")
        made, _ = await store.once("acme", PLACE, "key", b"{}", Maker())
        await store.finish(late, {"conversation_id": "of the late one"})
        await store.give_up(late, nothing_made=True)
        assert await store.once("acme", PLACE, "key", b"{}", Maker()) == (made, True)
    assert "idempotency claim lost to another request" in caplog.text


@in_event_loop
async def test_a_claim_is_renewed_while_the_request_runs(shared_place: Place) -> None:
    async with shared_place.open(Idempotency, lease=0.6) as store:
        claim = await store.claim("acme", PLACE, "key", b"{}")

        async def leased_until() -> float:
            query = "SELECT leased_until FROM idempotency_keys WHERE request_key = ?1"
            return await store._fetch(query, (claim.request_key,), lambda rows: float(rows[0][0]))

        async with store.hold(claim):
            first = latest = await leased_until()
            async with asyncio.timeout(30):
                while latest <= first:
                    await asyncio.sleep(0.01)
                    latest = await leased_until()


@in_event_loop
async def test_after_a_day_the_key_is_new_and_makes_something_else(place: Place) -> None:
    make = Maker()
    async with place.open(Idempotency, lifetime=-1) as store:
        for body in (b"{}", b"{}", b"other"):
            _, is_replay = await store.once("acme", PLACE, "key", body, make)
            assert not is_replay
    assert len(set(make.made)) == 3


@in_event_loop
async def test_what_has_expired_is_purged_and_nothing_else(place: Place) -> None:
    make = Maker()
    async with place.open(Idempotency) as store:
        kept = await store.once("acme", PLACE, "kept", b"{}", make)
        store._lifetime = -1
        for number in range(3):
            await store.once("acme", PLACE, str(number), b"{}", make)
        assert await store.purge_expired() == 3
        assert await store.purge_expired() == 0
        assert await store.once("acme", PLACE, "kept", b"{}", make) == (kept[0], True)


@in_event_loop
async def test_what_concerns_a_user_goes_with_them(place: Place) -> None:
    def about(user: str) -> Make:
        async def make(ids: Ids) -> dict[str, Any]:
            ids.about(user)
            return {"id": ids("conversation")}

        return make

    async with place.open(Idempotency) as store:
        await store.once("acme", PLACE, "1", b"{}", about("alice"))
        await store.once("acme", PLACE, "2", b"{}", about("bob"))
        await store.once("other", PLACE, "3", b"{}", about("alice"))
        assert await store.forget_user("acme", "alice") == 1
        assert await store.forget_user("acme", "alice") == 0
        replays = [
            (await store.once(tenant, PLACE, key, b"{}", about("nobody")))[1]
            for tenant, key in (("acme", "1"), ("acme", "2"), ("other", "3"))
        ]
    assert replays == [False, True, True]


@in_event_loop
async def test_the_table_has_neither_the_key_nor_the_body_nor_the_user(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "service.db"
    async with Idempotency(path) as store:

        async def make(ids: Ids) -> dict[str, Any]:
            ids.about("alice@example.org")
            return {"id": ids("conversation")}

        await store.once("acme", PLACE, "planted-key", b"planted body", make)
        await refused(store, "acme", PLACE, "planted-key", b"planted other")
    with closing(sqlite3.connect(path)) as connection:
        dumped = "\n".join(connection.iterdump())
    assert "idempotency_keys" in dumped
    for planted in ("planted", "alice"):
        assert planted not in dumped + caplog.text


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "k" * 256, "a\n", "\0", "\x7f", "\ud800"])
@in_event_loop
async def test_a_key_that_cannot_be_one_is_refused_by_its_name(key: str) -> None:
    async with Idempotency(":memory:") as store:
        make = Maker()
        with pytest.raises(Problem) as raised:
            await store.once("acme", PLACE, key, b"{}", make)
    assert raised.value.status == 422
    assert raised.value.errors[0]["field"] == "header.Idempotency-Key"
    assert make.made == []


@pytest.mark.parametrize("key", ["k", "~" * 255, "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}\\"])
def test_any_visible_ascii_will_do(key: str) -> None:
    assert check_key(key) == key


def test_ids_are_uuids_the_same_for_the_same_seed_and_thing() -> None:
    seed = new_seed()
    ids, same, other = Ids(seed), Ids(seed), Ids(new_seed())
    assert ids("turn") == same("turn")
    assert len({ids("turn"), ids("conversation"), other("turn"), other("conversation")}) == 4
    made = uuid.UUID(ids("turn"))
    assert (str(made), made.version, made.variant) == (ids("turn"), 8, uuid.RFC_4122)


def test_ids_begin_with_the_time_of_their_seed() -> None:
    first, second = (Ids(f"{time_ordered_id(moment * 1000)}/{new_hex()}") for moment in (0x123456789ABC, 1))
    assert {first("turn")[:13], first("message 3")[:13]} == {"12345678-9abc"}
    assert second("turn")[:13] == "00000000-0001"
    assert first("turn") != first("message 3")


def test_ids_of_new_seeds_sort_by_time() -> None:
    before = new_id()
    made = Ids(new_seed())("conversation")
    assert before[:13] <= made[:13] <= new_id()[:13]


def test_the_short_part_of_an_id_is_not_its_time() -> None:
    ids = Ids(new_seed())
    assert ids.short("branch") == ids("branch")[-8:]
    assert ids.short("branch") != Ids(new_seed()).short("branch")


@pytest.mark.parametrize(
    ("kept", "decision"),
    [
        (ClaimRow("mine", "s", None, True, False), "in_progress"),
        (ClaimRow("mine", "s", None, False, False), "take_over"),
        (ClaimRow("mine", "s", "{}", False, False), "replay"),
        (ClaimRow("mine", "s", "{}", True, False), "replay"),
        (ClaimRow("others", "s", None, True, False), "reused"),
        (ClaimRow("others", "s", "{}", False, False), "reused"),
        (ClaimRow("others", "s", "{}", False, True), "new"),
        (ClaimRow("mine", "s", "{}", False, True), "new"),
        (ClaimRow("mine", "s", None, True, True), "new"),
    ],
)
def test_what_a_request_may_do_is_decided_by_what_is_kept(kept: ClaimRow, decision: str) -> None:
    assert decide(kept, "mine") == decision


@in_event_loop
async def test_a_claim_that_could_not_be_released_is_released_by_the_next_request(tmp_path: Path) -> None:
    path, body = tmp_path / "service.db", b"{}"

    def rename(old: str, new: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"ALTER TABLE {old} RENAME TO {new}")

    async def lose_the_database(_: Ids) -> dict[str, Any]:
        rename("idempotency_keys", "away")
        raise ConnectionLostError("the connection was lost")

    async with Idempotency(path, lease=3600) as store:
        with pytest.raises(ConnectionLostError):
            await store.once("acme", PLACE, "key", body, lose_the_database)
        rename("away", "idempotency_keys")
        again = Maker()
        made, is_replay = await store.once("acme", PLACE, "key", body, again)
        assert (made, is_replay) == ({"conversation_id": again.made[0]}, False)
