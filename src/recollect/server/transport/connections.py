"""HTTP connections that cannot be held for ever by whoever sends slowly, or does not read.

uvicorn closes a connection that is idle between two requests. One whose request never quite arrives, or whose
answer is not taken, it would keep; this closes those too.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_HEAD = 64 * 1024  # bytes, before what is left of it is not waited for


class TimedConnection(HttpToolsProtocol):
    """A connection on which a request must arrive in a given time, and its answer be taken."""

    receive_seconds = 30.0
    """How long a request may take to arrive, head and body."""
    read_seconds = 60.0
    """How long a reader may take none of what has piled up for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arrival: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = 0
        """How much of a head has come; `None` once it is whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, unless its head has no end."""
        if self._head_bytes is not None and self._head_bytes > _LARGEST_HEAD:
            self._give_up()
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_waiting_for_nobody():
            self._expect_request()

    def on_message_begin(self) -> None:
        """A request begins to arrive: the first one of a connection has been waited for already."""
        super().on_message_begin()
        if self._arrival is None:
            self._expect_request()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole: how long its answer takes is another matter."""
        self._forget_arrival()
        self._head_bytes = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The answer piles up."""
        super().pause_writing()
        self._reading = self.loop.call_later(self.read_seconds, self._give_up)

    def resume_writing(self) -> None:
        """The answer is being read."""
        super().resume_writing()
        self._forget_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._forget_arrival()
        self._forget_reading()
        super().connection_lost(exc)

    def _is_waiting_for_nobody(self) -> bool:
        """Something came that is not a request yet, such as empty lines, and nothing else limits the time."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self._arrival is None and self.timeout_keep_alive_task is None

    def _expect_request(self) -> None:
        self._arrival = self.loop.call_later(self.receive_seconds, self._give_up)

    def _forget_arrival(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _forget_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
