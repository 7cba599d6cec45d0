"""Optional abilities: positions, batches, metadata and leases."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ...sessions.protocol import AppendsOnce, Described, Leasable, Positioned, SessionMetadata
from .base import ContractBase, needs
from .tools import UNFIT_TEXTS, close, in_event_loop, message, texts

_UNFIT_METADATA: dict[str, Callable[[str], SessionMetadata]] = {
    "user_id": lambda text: SessionMetadata(user_id=text),
    "agent_id": lambda text: SessionMetadata(agent_id=text),
    "title": lambda text: SessionMetadata(title=text),
}


class AbilityContract(ContractBase):
    """Sessions that are `Positioned`, `AppendsOnce`, `Described` or `Leasable`."""

    @in_event_loop
    @needs(Positioned)
    async def test_reads_in_parts_by_position(self) -> None:
        session: Any = await self.open_session("s")
        other = await self.open_session("other")
        for n in range(10):
            await session.add_items([message(n)])
            await other.add_items([message("not mine")])
        everything = await session.read_after(0)
        assert texts([item for _, item in everything]) == [str(n) for n in range(10)]
        positions = [position for position, _ in everything]
        assert positions == sorted(set(positions))
        assert await session.read_after(positions[3], limit=2) == everything[4:6]
        assert await session.read_before(None, 3) == everything[7:]
        assert await session.read_before(positions[7], 3) == everything[4:7]
        assert await session.read_before(positions[0], 3) == []
        assert await session.read_after(positions[-1]) == []
        assert await session.read_before(None, 0) == []
        await close(session)
        await close(other)

    @in_event_loop
    @needs(AppendsOnce)
    async def test_a_batch_with_an_id_is_added_once(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.add_batch([message("a"), message("b")], "batch-1") is True
        assert await session.add_batch([message("a"), message("b")], "batch-1") is False
        assert await session.add_batch([message("a")], "batch-2") is True
        assert texts(await session.get_items()) == ["a", "b", "a"]
        await close(session)

    @in_event_loop
    @needs(Described)
    async def test_carries_metadata(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.get_metadata() == SessionMetadata()
        metadata = SessionMetadata("user", "agent", "a title 标题", {"n": 1, "list": [None]})
        await session.set_metadata(metadata)
        assert await session.get_metadata() == metadata
        await session.add_items([message("a")])
        assert await session.get_metadata() == metadata
        await session.set_metadata(SessionMetadata(title="another"))
        assert await session.get_metadata() == SessionMetadata(title="another")
        await session.clear_session()
        assert await session.get_metadata() == SessionMetadata()
        await close(session)

    @in_event_loop
    @needs(Leasable)
    async def test_one_owner_at_a_time_holds_the_lease(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.take_lease("one", 30)
        assert await session.take_lease("one", 30), "its owner may extend it"
        assert not await session.take_lease("two", 30)
        await session.drop_lease("two")
        assert not await session.take_lease("two", 30), "another's lease cannot be dropped"
        await session.drop_lease("one")
        assert await session.take_lease("two", 0.05)
        await asyncio.sleep(0.1)
        assert await session.take_lease("one", 30), "it was not renewed in time"
        await close(session)

    @in_event_loop
    @needs(Leasable)
    async def test_a_run_that_clears_its_session_goes_on_holding_it(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a")])
        assert await session.take_lease("one", 30)
        await session.clear_session()
        assert not await session.take_lease("two", 30)
        await session.drop_lease("one")
        assert await session.take_lease("two", 30)
        await close(session)

    # --- texts that not every database can store ---

    @pytest.mark.parametrize("text", UNFIT_TEXTS, ids=ascii)
    @pytest.mark.parametrize("field", list(_UNFIT_METADATA))
    @in_event_loop
    @needs(Described)
    async def test_metadata_that_cannot_be_stored_anywhere_is_refused(self, field: str, text: str) -> None:
        session: Any = await self.open_session("s")
        await session.set_metadata(SessionMetadata("before"))
        with pytest.raises(ValueError, match=f"metadata.{field} must be valid unicode") as refused:
            await session.set_metadata(_UNFIT_METADATA[field](text))
        assert text not in str(refused.value)
        assert await session.get_metadata() == SessionMetadata("before")
        await close(session)

    @in_event_loop
    @needs(Described)
    async def test_data_may_hold_any_text_that_json_can(self) -> None:
        session: Any = await self.open_session("s")
        data = {f"key {text}": [text] for text in UNFIT_TEXTS}
        await session.set_metadata(SessionMetadata(data=data))
        assert (await session.get_metadata()).data == data
        with pytest.raises(TypeError):
            await session.set_metadata(SessionMetadata(data={"n": object()}))
        assert (await session.get_metadata()).data == data
        await close(session)

    @in_event_loop
    @needs(Described)
    async def test_metadata_is_of_texts(self) -> None:
        session: Any = await self.open_session("s")
        for field in _UNFIT_METADATA:
            with pytest.raises(TypeError, match=field):
                await session.set_metadata(SessionMetadata(**{field: 7}))  # type: ignore[arg-type]
        assert await session.get_metadata() == SessionMetadata()
        await close(session)

    @pytest.mark.parametrize("text", UNFIT_TEXTS, ids=ascii)
    @in_event_loop
    @needs(AppendsOnce)
    async def test_a_batch_id_that_cannot_be_stored_anywhere_is_refused(self, text: str) -> None:
        session: Any = await self.open_session("s")
        with pytest.raises(ValueError, match="batch_id must be valid unicode"):
            await session.add_batch([message("a")], text)
        assert await session.get_items() == []
        await close(session)

    @pytest.mark.parametrize("text", UNFIT_TEXTS, ids=ascii)
    @in_event_loop
    @needs(Leasable)
    async def test_an_owner_that_cannot_be_stored_anywhere_is_refused(self, text: str) -> None:
        session: Any = await self.open_session("s")
        with pytest.raises(ValueError, match="owner must be valid unicode"):
            await session.take_lease(text, 30)
        with pytest.raises(ValueError, match="owner must be valid unicode"):
            await session.drop_lease(text)
        assert await session.take_lease("another", 30)
        await close(session)
