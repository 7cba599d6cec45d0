"""A class on our protocol works where the SDK expects one on its own."""

from typing import Any

import agents
import pytest
from agents.extensions.memory import EncryptedSession as Theirs

import recollect
from recollect import EncryptedSession
from recollect.testing.contract import in_event_loop, message, texts


class OnTheProtocol(recollect.Session):
    """As short as a session of one's own can be: it has an id, and no settings."""

    def __init__(self) -> None:
        self.session_id = "s"
        self.items: list[recollect.TResponseInputItem] = []

    async def get_items(self, limit: int | None = None) -> list[recollect.TResponseInputItem]:
        return self.items if limit is None else self.items[len(self.items) - limit :]

    async def add_items(self, items: list[recollect.TResponseInputItem]) -> None:
        self.items += items

    async def pop_item(self) -> recollect.TResponseInputItem | None:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


class OnTheBase(recollect.SessionABC):
    """The same on our base class, without a call of its constructor."""

    __init__ = OnTheProtocol.__init__  # type: ignore[assignment]
    get_items = OnTheProtocol.get_items  # type: ignore[assignment]
    add_items = OnTheProtocol.add_items  # type: ignore[assignment]
    pop_item = OnTheProtocol.pop_item  # type: ignore[assignment]
    clear_session = OnTheProtocol.clear_session  # type: ignore[assignment]


@pytest.mark.parametrize("encrypt", [Theirs, EncryptedSession], ids=["the SDK's", "ours"])
@pytest.mark.parametrize("base", [OnTheProtocol, OnTheBase])
@in_event_loop
async def test_a_class_without_settings_of_its_own_can_be_encrypted(base: Any, encrypt: Any) -> None:
    inner = base()
    assert inner.session_settings is None
    assert isinstance(inner, agents.Session)
    session = encrypt("s", inner, "key")
    await session.add_items([message("a"), message("b")])
    assert texts(await session.get_items()) == ["a", "b"]
    assert await session.pop_item() == message("b")


def test_the_name_of_an_item_needs_no_sdk() -> None:
    assert recollect.TResponseInputItem == recollect.Item
