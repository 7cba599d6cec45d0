"""The contract of a session, as tests.

Inherit `SessionContract` in a test module, implement `open_session`, and run pytest:

    class TestMySession(SessionContract):
        async def open_session(self, session_id):
            return MySession(session_id)
"""

from .abilities import AbilityContract
from .basics import BasicContract
from .checked_pops import PoppingContract
from .concurrency import ConcurrencyContract
from .notes import NotesContract
from .rewrites import RewritingContract
from .tools import (
    HOSTILE_IDS,
    ODD_ITEMS,
    assert_whole_and_ordered,
    close,
    in_event_loop,
    message,
    texts,
)


class SessionContract(
    BasicContract,
    ConcurrencyContract,
    RewritingContract,
    PoppingContract,
    AbilityContract,
    NotesContract,
):
    """The rules for every session. Override `open_session`, and the flags if they differ."""


__all__ = [
    "HOSTILE_IDS",
    "ODD_ITEMS",
    "SessionContract",
    "assert_whole_and_ordered",
    "close",
    "in_event_loop",
    "message",
    "texts",
]
