"""One user of three is erased: nothing of theirs is left anywhere, and of the others everything."""

import psycopg

from recollect.memory.database.schema import CONTENTS, CONVERSATIONS, MESSAGES
from recollect.testing.contract import in_event_loop

from .kit import Somewhere, learn
from .people import Rows, attach_words, bytes_of, marked, move_in, plain, rows_of, unmarked

GONE, OTHERS = "zuzalicezuz", ("quqbrunoquq", "vuvclaravuv")
COUNTED = {
    "sessions": 1,
    "items": 3,
    "events": 2,
    "summaries": 2,
    "memories": 1,
    "entries": 5,
    "evidence": 4,
    "conversations": 8,
    "messages": 10,
    "runs": 8,
    "stages": 6,
    "failures": 1,
    "queued": 1,
}


@in_event_loop
async def test_erasing_one_user_of_three_leaves_no_trace_of_them_and_every_byte_of_the_others(
    any_way: Somewhere,
) -> None:
    async with any_way.open(embeds=True) as store:
        await move_in(any_way, store, OTHERS[0], GONE, OTHERS[1])
        for mark in (OTHERS[0], GONE):
            await attach_words(store, mark)
        assert await store.embed_pending() > 0
        await store.receipt_subject("anybody")  # makes the key of receipts, which names nobody
        before = rows_of(any_way.url)
        # All tables have something of theirs, so that what follows says something about each of them.
        assert marked(before, GONE).keys() == {name for name, rows in before.items() if rows} - {
            "memory_keys",
            "memory_embedders",
        }
        assert GONE.encode() in bytes_of(any_way.url)
        assert all(GONE in text for text in _given_columns(before))

        receipt = await store.erase_user(f"user {GONE}")
        await store.vacuum(full=True)

        after = rows_of(any_way.url)
        assert marked(after, GONE) == {}
        assert after == unmarked(before, GONE)
        assert GONE.encode() not in bytes_of(any_way.url)
        assert all(mark.encode() in bytes_of(any_way.url) for mark in OTHERS)
        index_rows = receipt.counts.pop("index_rows")
        assert index_rows == len(marked(before, GONE)["memory_terms"])
        assert receipt.counts == COUNTED
        assert GONE not in repr(receipt.to_dict())

        again = await store.erase_user(f"user {GONE}")
        assert not any(again.counts.values())
        assert rows_of(any_way.url) == after


@in_event_loop
async def test_the_others_go_on_as_if_nothing_had_been(shared: Somewhere) -> None:
    async with shared.open() as store:
        await move_in(shared, store, GONE, OTHERS[0])
        exported = await store.export_user(f"user {OTHERS[0]}")
        await store.erase_user(f"user {GONE}")
        await store.vacuum()
        assert await store.export_user(f"user {OTHERS[0]}") == exported
        await learn(store)
        memory = await store.get_memory_by_id(f"{OTHERS[0]} memory")
        assert memory is not None
        assert memory.profile_content == [
            f"keeps a tortoise called {OTHERS[0]}",
            f"moved to a farm near {OTHERS[0]}",
            f"mends clocks of {OTHERS[0]}",
        ]
        await move_in(shared, store, GONE)  # as a new user, whose ids are free again
        assert (await store.export_user(f"user {GONE}"))["memories"] != []


@in_event_loop
async def test_what_postgresql_knows_of_its_columns_tells_nothing_either(empty_postgres: str) -> None:
    somewhere = Somewhere(empty_postgres.replace("postgresql:", "postgresql+asyncpg:"), create_tables=True)
    async with somewhere.open() as store:
        await move_in(somewhere, store, GONE, OTHERS[0])
        await attach_words(store, GONE)
        with psycopg.connect(plain(somewhere.url), autocommit=True) as connection:
            connection.execute("ANALYZE")
            assert GONE in _statistics(connection)
            await store.erase_user(f"user {GONE}")
            await store.vacuum()
            assert GONE not in _statistics(connection)
            assert OTHERS[0] in _statistics(connection)


def _given_columns(rows: Rows) -> list[str]:
    """All values of metadata, names and attachments, by their columns."""
    columns = (
        (CONVERSATIONS, "metadata"),
        (CONTENTS, "metadata"),
        (MESSAGES, "name"),
        (MESSAGES, "attachments"),
    )
    return [
        repr([row[table.column_names.index(column)] for row in rows[table.name]]) for table, column in columns
    ]


def _statistics(connection: psycopg.Connection[tuple[str]]) -> str:
    columns = connection.execute(
        "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats WHERE schemaname = 'public'"
    )
    return repr(columns.fetchall())
