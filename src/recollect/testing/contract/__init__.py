"""The contract of a session, as tests.

Inherit `SessionContract` in a test module, say how to open a session, and run pytest:

    class TestMySession(SessionContract):
        async def open_session(self, session_id):
            return MySession(session_id)
"""

from .abilities import AbilityContract
from .basics import BasicContract
from .concurrency import ConcurrencyContract
from .notes import NotesContract
from .popping import PoppingContract
from .rewriting import RewritingContract
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
    """What must hold for every session. Override `open_session`, and the flags where they differ."""


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
