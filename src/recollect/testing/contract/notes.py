"""Notes next to a history, with optimistic locking by version."""

import asyncio
from typing import Any

import pytest

from ...sessions.protocol import Note, Noted, Rewritable
from .base import ContractBase, needs
from .tools import HOSTILE_IDS, ODD_ITEMS, UNFIT_TEXTS, close, in_event_loop, message, texts


class NotesContract(ContractBase):
    """Sessions that are `Noted`."""

    @in_event_loop
    @needs(Noted)
    async def test_a_note_is_set_by_who_knows_its_version(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.get_note("summary") is None
        assert not await session.set_note("summary", {"n": 0}, 1), "there is none to be changed"
        assert await session.set_note("summary", {"n": 1}, 0)
        assert await session.get_note("summary") == Note(1, {"n": 1})
        assert not await session.set_note("summary", {"n": 2}, 0), "there is one"
        assert not await session.set_note("summary", {"n": 2}, 2)
        assert await session.get_note("summary") == Note(1, {"n": 1})
        for version in range(1, 12):
            assert await session.set_note("summary", {"n": version + 1}, version)
        assert await session.get_note("summary") == Note(12, {"n": 12})
        await close(session)

    @in_event_loop
    @needs(Noted)
    async def test_of_those_who_set_a_note_at_once_one_succeeds(self) -> None:
        session: Any = await self.open_session("s")
        for version in range(3):
            outcomes = await asyncio.gather(
                *(session.set_note("summary", {"by": writer}, version) for writer in range(12))
            )
            assert outcomes.count(True) == 1
            assert outcomes.count(False) == 11
            assert await session.get_note("summary") == Note(version + 1, {"by": outcomes.index(True)})
        await close(session)

    @in_event_loop
    @needs(Noted)
    async def test_notes_of_other_keys_and_sessions_are_others(self) -> None:
        session, other = await self.open_session("s"), await self.open_session("other")
        noted: Any = session
        for number, key in enumerate(["", *HOSTILE_IDS[:-1], "x" * 255]):
            assert await noted.set_note(key, {"n": number}, 0)
        for number, key in enumerate(["", *HOSTILE_IDS[:-1], "x" * 255]):
            assert await noted.get_note(key) == Note(1, {"n": number})
        assert await other.get_note("a") is None  # type: ignore[attr-defined]
        assert await session.get_items() == []
        await close(session)
        await close(other)

    @in_event_loop
    @needs(Noted)
    async def test_a_note_comes_back_exactly_and_is_shared_with_nobody(self) -> None:
        session: Any = await self.open_session("s")
        data = {"items": ODD_ITEMS, "empty": {}, "": [[]]}
        assert await session.set_note("summary", data, 0)
        read = (await session.get_note("summary")).data
        assert repr(read) == repr(data)
        read["empty"]["changed"] = "by a reader"
        assert repr((await session.get_note("summary")).data) == repr(data)
        await close(session)

    @in_event_loop
    @needs(Noted)
    async def test_a_note_that_cannot_be_stored_is_refused(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.set_note("summary", {"n": 1}, 0)
        for bad in ({"n": object()}, {"n": float("nan")}, {1: "integer key"}):
            with pytest.raises(TypeError):
                await session.set_note("summary", bad, 1)
        for text in UNFIT_TEXTS:
            with pytest.raises(ValueError, match="key must be valid unicode"):
                await session.set_note(text, {}, 0)
            with pytest.raises(ValueError, match="key must be valid unicode"):
                await session.get_note(text)
        assert await session.get_note("summary") == Note(1, {"n": 1})
        await close(session)

    @in_event_loop
    @needs(Noted)
    async def test_notes_stay_whatever_happens_to_the_items_and_go_with_the_session(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.set_note("summary", {"n": 1}, 0)
        await session.add_items([message("a"), message("b")])
        await session.pop_item()
        await session.pop_item()
        await session.add_items([message("c")])
        assert await session.get_note("summary") == Note(1, {"n": 1})
        await session.clear_session()
        assert await session.get_note("summary") is None
        assert await session.set_note("summary", {"n": 2}, 0), "it begins anew"
        assert await session.get_note("summary") == Note(1, {"n": 2})
        await close(session)

    @in_event_loop
    @needs(Noted)
    @needs(Rewritable)
    async def test_a_rewriting_leaves_notes_as_they_are(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a")])
        assert await session.set_note("summary", {"n": 1}, 0)
        await session.replace_items([message("b")])
        await session.replace_items([])
        assert await session.get_note("summary") == Note(1, {"n": 1})
        assert texts(await session.get_items()) == []
        await close(session)

    @in_event_loop
    @needs(Noted)
    @needs(Rewritable)
    async def test_a_revision_empties_notes_which_may_tell_of_what_was_there(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a secret")])
        assert await session.set_note("summary", {"text": "a secret"}, 0)
        await session.revise_items(lambda _: [message("redacted")])
        note = await session.get_note("summary")
        assert note is None or note.data == {}
        assert not await session.set_note("summary", {"text": "a secret"}, 1), (
            "who knew it then knows it no more"
        )
        await close(session)

    @in_event_loop
    @needs(Noted)
    async def test_a_note_is_there_when_the_session_is_opened_again(self) -> None:
        if not self.shared:
            return
        session: Any = await self.open_session("s")
        assert await session.set_note("summary", {"n": 1}, 0)
        await close(session)
        again: Any = await self.open_session("s")
        assert await again.get_note("summary") == Note(1, {"n": 1})
        await close(again)
