"""Erasing messages, conversations, memories: what goes, what stays, what comes back."""

from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, known, learn, runner_of, said, tell


@in_event_loop
async def test_what_one_message_said_goes_with_it_and_the_rest_stays(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent", "pet: has a tortoise named Ida")
        receipt = await store.erase_message("c1", "m0")
        assert await known(store) == ["has a tortoise named Ida"]
        assert (receipt.counts["messages"], receipt.counts["entries"], receipt.counts["evidence"]) == (
            1,
            1,
            1,
        )
        conversation = await store.get_conversation("c1")
        assert conversation is not None
        assert [(each.message_id, each.message_index) for each in conversation.messages] == [("m1", 1)]
        assert conversation.pipeline_result is None


@in_event_loop
async def test_what_was_superseded_by_an_erased_message_comes_back(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: moved to a farm near Oslo")
        assert await known(store) == ["moved to a farm near Oslo"]
        await store.erase_message("c2", "m0")
        (entry,) = await store.list_entries(AGENT, "ann", include_retired=True)
        assert (entry.text, entry.retired_at, entry.superseded_by) == ("lives in Ghent", None, None)
        # It is found again by its terms: what says the same adds to it, and is no second entry.
        await tell(store, "c3", "home: lives in Ghent")
        (again,) = await store.list_entries(AGENT, "ann", include_retired=True)
        assert [each.conversation_id for each in again.evidence] in (["c1", "c3"], ["c3", "c1"])


@in_event_loop
async def test_what_stood_before_an_erased_entry_is_superseded_by_what_came_after(
    somewhere: Somewhere,
) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: moved to a farm near Oslo")
        await tell(store, "c3", "home: rents a boat at Lisbon")
        await store.erase_conversation("c2")
        first, last = await store.list_entries(AGENT, "ann", include_retired=True)
        assert (first.text, last.text) == ("lives in Ghent", "rents a boat at Lisbon")
        assert (first.superseded_by, last.supersedes) == (last.content_id, (first.content_id,))
        assert first.retired_at is not None
        assert await known(store) == ["rents a boat at Lisbon"]


@in_event_loop
async def test_an_entry_that_others_say_too_stays_in_their_words(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: dwells by the castle of the counts (again)")
        (before,) = await store.list_entries(AGENT, "ann")
        assert (before.text, len(before.evidence)) == ("lives in Ghent", 2)
        receipt = await store.erase_conversation("c1")
        (after,) = await store.list_entries(AGENT, "ann")
        assert after.content_id == before.content_id
        assert after.text == "dwells by the castle of the counts (again)"
        assert after.data == {}
        assert [each.conversation_id for each in after.evidence] == ["c2"]
        assert (receipt.counts["entries"], receipt.counts["evidence"]) == (0, 1)
        assert await store._database.related(after.memory_id, ["a castle"]) != []
        assert await store._database.related(after.memory_id, ["Ghent"]) == []


@in_event_loop
async def test_an_entry_stays_as_it_is_where_others_only_added_to_it(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: dwells by the castle of the counts (again)")
        await store.erase_message("c2", "m0")
        (entry,) = await store.list_entries(AGENT, "ann")
        assert entry.text == "lives in Ghent"
        assert entry.data == {"slot": "home", "said": "lives in Ghent"}
        assert [each.conversation_id for each in entry.evidence] == ["c1"]


@in_event_loop
async def test_what_a_person_wrote_stays_whatever_is_erased(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        written = await store.add_entry(AGENT, "ann", "profile", "lives in Ghent")
        await tell(store, "c1", "home: lives in Ghent")
        (supported,) = await store.list_entries(AGENT, "ann")
        assert len(supported.evidence) == 1
        await store.erase_conversation("c1")
        (entry,) = await store.list_entries(AGENT, "ann")
        assert (entry.content_id, entry.text, entry.evidence) == (written.content_id, "lives in Ghent", ())


@in_event_loop
async def test_kept_answers_that_quote_what_is_gone_go_too(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: dwells by the castle (again)")  # whose answer told of what was known
        await store.erase_message("c1", "m0")
        for run in await store.list_runs():
            stages = [stage.stage for stage in run.stages]
            assert run.conversation_id == "c2"
            assert stages == ["modification", "update"]
        other = await store.get_conversation("c2")
        assert other is not None
        assert other.pipeline_result is None
        exported = await store.export_user("ann")
        assert "Ghent" not in repr(exported)


@in_event_loop
async def test_a_run_that_waits_learns_from_what_is_left(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        messages = said("home: lives in Ghent", "pet: has a tortoise named Ida")
        await store.record_conversation(AGENT, "ann", messages, conversation_id="c1")
        await store.erase_message("c1", "m0")
        await learn(store)
        assert await known(store) == ["has a tortoise named Ida"]


@in_event_loop
async def test_a_run_of_which_nothing_is_left_is_no_more(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await store.record_conversation(AGENT, "ann", said("home: lives in Ghent"), conversation_id="c1")
        receipt = await store.erase_message("c1", "m0")
        assert receipt.counts["runs"] == 1
        assert await store.list_runs() == []
        assert await runner_of(store).claim("mine") is None


@in_event_loop
async def test_a_failed_run_keeps_nothing_of_an_erased_message(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "garbage from Ghent", "pet: has a tortoise named Ida")
        (failed,) = await store.list_runs(status="failed")
        assert "Ghent" in failed.failures[0].raw_response
        await store.erase_message("c1", "m0")
        (left,) = await store.list_runs(status="failed")
        assert left.failures == ()
        await store.retry_run(left.run_id)
        await learn(store)
        assert await known(store) == ["has a tortoise named Ida"]


@in_event_loop
async def test_a_deleted_memory_does_not_come_back_and_its_conversations_stay(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "garbage from Oslo")
        await store.record_conversation(AGENT, "ann", said("pet: a tortoise"), conversation_id="c3")
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        receipt = await store.delete_memory(memory.memory_id)
        assert (receipt.counts["entries"], receipt.counts["runs"]) == (1, 3)
        assert await store.list_runs() == []
        await learn(store)
        assert await store.list_entries(AGENT, "ann", include_retired=True) == []
        assert len(await store.list_conversations(AGENT, "ann")) == 3
        await store.append_messages("c1", [{"role": "user", "content": "pet: has a tortoise named Ida"}])
        await learn(store)
        assert await known(store) == ["has a tortoise named Ida"]


@in_event_loop
async def test_a_deleted_memory_without_conversations_is_gone(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        entry = await store.add_entry(AGENT, "ann", "profile", "lives in Ghent")
        await store.delete_memory(entry.memory_id)
        assert await store.get_memory(AGENT, "ann") is None


@in_event_loop
async def test_what_is_not_there_leaves_an_empty_receipt(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        before = await store.export_user("ann")
        for receipt in (
            await store.erase_message("c1", "m9"),
            await store.erase_message("c9", "m0"),
            await store.erase_conversation("c9"),
            await store.delete_memory("no such memory"),
            await store.erase_user("nobody"),
        ):
            assert not any(receipt.counts.values())
        assert await store.export_user("ann") == before


@in_event_loop
async def test_a_tenant_reaches_nothing_of_another(shared: Somewhere) -> None:
    async with shared.open() as mine, shared.open(tenant="other") as other:
        await tell(mine, "c1", "home: lives in Ghent")
        before = await mine.export_user("ann")
        (entry,) = await mine.list_entries(AGENT, "ann")
        assert await other.why(entry.content_id) is None
        empty = await other.export_user("ann")
        assert not empty["memories"]
        assert not empty["conversations"]
        for receipt in (
            await other.erase_message("c1", "m0"),
            await other.erase_conversation("c1"),
            await other.delete_memory(entry.memory_id),
            await other.erase_user("ann"),
        ):
            assert not any(receipt.counts.values())
        assert await mine.export_user("ann") == before


@in_event_loop
async def test_search_finds_nothing_of_what_is_gone_and_finds_what_came_back(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        await tell(store, "c2", "home: moved to a farm near Oslo")

        async def found(query: str) -> list[int]:
            entries = await store.search_memories(query, AGENT, "ann")
            turns = await store.search_conversations(query, AGENT, "ann")
            return [len(entries.hits), len(turns.hits)]

        assert [await found("Ghent"), await found("Oslo")] == [[0, 1], [1, 1]]
        await store.erase_message("c2", "m0")
        assert [await found("Ghent"), await found("Oslo")] == [[1, 1], [0, 0]]
        exported = await store.export_user("ann")
        await store.erase_user("ann")
        assert await found("Ghent") == [0, 0]
        await store.import_user(exported)
        assert await found("Ghent") == [1, 1]
