"""Why something is known."""

import json

from recollect.memory.database.schema import CONTENTS, EVIDENCE
from recollect.sql.scripts import Statement, run_all
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, tell


@in_event_loop
async def test_why_quotes_the_evidence_and_names_the_run_that_read_it(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "hello there", "home: lives in Ghent \0 town")
        (entry,) = await store.list_entries(AGENT, "ann")
        (run,) = await store.list_runs()
        why = await store.why(entry.content_id)
        assert why is not None
        assert why.entry == entry
        (quote,) = why.evidence
        assert (quote.conversation_id, quote.message_id, quote.role) == ("c1", "m1", "user")
        assert (quote.content, quote.run_id) == ("home: lives in Ghent \0 town", run.run_id)
        assert why.origin is not None
        assert (why.origin.run_id, why.origin.model, why.origin.finished_at) == (
            run.run_id,
            "rules",
            run.finished_at,
        )
        assert (why.supersedes, why.superseded_by) == ((), ())


@in_event_loop
async def test_why_tells_the_history_in_both_directions(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: moved to a farm near Oslo")
        await tell(store, "c3", "home: rents a boat at Lisbon")
        first, second, third = await store.list_entries(AGENT, "ann", include_retired=True)
        oldest, middle, newest = [await store.why(each.content_id) for each in (first, second, third)]
        assert oldest is not None
        assert middle is not None
        assert newest is not None
        assert (oldest.supersedes, oldest.superseded_by) == ((), (second, third))
        assert (middle.supersedes, middle.superseded_by) == ((first,), (third,))
        assert (newest.supersedes, newest.superseded_by) == ((second, first), ())


@in_event_loop
async def test_why_of_what_a_person_wrote_has_no_evidence_and_no_run(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        entry = await store.add_entry(AGENT, "ann", "profile", "lives in Ghent")
        why = await store.why(entry.content_id)
        assert why is not None
        assert (why.evidence, why.origin) == ((), None)


@in_event_loop
async def test_why_is_told_as_json_and_shows_no_contents_when_printed(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        (entry,) = await store.list_entries(AGENT, "ann")
        why = await store.why(entry.content_id)
        assert why is not None
        told = json.loads(json.dumps(why.to_dict()))
        assert told["entry"]["content_text"] == "lives in Ghent"
        assert told["evidence"][0]["content"] == "home: lives in Ghent"
        assert told["origin"]["model"] == "rules"
        assert "Ghent" not in repr(why)
        assert await store.why("no such entry") is None


@in_event_loop
async def test_why_quotes_nobody_else_and_names_no_run_of_theirs_whatever_is_cited(
    somewhere: Somewhere,
) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "pin: is 4711, says the victim", user="victim")
        (run,) = await store.list_runs()
        entry = await store.add_entry(AGENT, "eve", "profile", "likes tea")
        cite = (
            f"INSERT INTO {EVIDENCE.name} (content_id, tenant, conversation_id, message_id, source, place,"
            " wording) VALUES (?1, 'default', 'c1', 'm0', '', 0, 'likes tea')"
        )
        claim = f"UPDATE {CONTENTS.name} SET run_id = ?2 WHERE content_id = ?1"
        statements = [
            Statement(cite, (entry.content_id,)),
            Statement(claim, (entry.content_id, run.run_id)),
        ]
        await store._database.write(lambda: run_all(statements))
        why = await store.why(entry.content_id)
        assert why is not None
        assert len(why.entry.evidence) == 1
        assert (why.evidence, why.origin) == ((), None)
