"""HTTP connections with time limits against slow clients.

uvicorn closes a connection that is idle between two requests. It would keep a connection whose request never
completes, or whose response is not read. This protocol closes those, too.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .bodies import is_streamed

_MAX_HEAD = 64 * 1024  # bytes of the request line and headers


class TimedConnection(HttpToolsProtocol):
    """A connection that is closed if a request arrives too slowly, or its response is not read."""

    receive_seconds = 30.0
    """The most time for a request to arrive, head and body; of a streamed one, the head."""
    read_seconds = 60.0
    """The most time without reading while the write buffer is full."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._receive_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = 0
        """The received bytes of a head; `None` once it is complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._start_receive_timer()

    def data_received(self, data: bytes) -> None:
        """Process a part of a request. A head that is too large closes the connection."""
        if self._head_bytes is not None and self._head_bytes > _MAX_HEAD:
            self._abort()
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_without_time_limit():
            self._start_receive_timer()

    def on_message_begin(self) -> None:
        """Start the time limit of a later request; that of the first one started with the connection."""
        super().on_message_begin()
        if self._receive_timer is None:
            self._start_receive_timer()

    def on_headers_complete(self) -> None:
        """Stop counting the bytes of the head, and the time of a streamed body: the gate limits each part."""
        self._head_bytes = None
        super().on_headers_complete()
        if is_streamed(self.scope):
            self._stop_receive_timer()

    def on_message_complete(self) -> None:
        """Stop the time limit of the request. The response has none."""
        self._stop_receive_timer()
        self._head_bytes = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the time limit for reading: the write buffer is full."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(self.read_seconds, self._abort)

    def resume_writing(self) -> None:
        """Stop the time limit for reading."""
        super().resume_writing()
        self._stop_read_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all time limits."""
        self._stop_receive_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def _is_without_time_limit(self) -> bool:
        """Whether bytes came that are no request yet, such as empty lines, and no timer is running."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self._receive_timer is None and self.timeout_keep_alive_task is None

    def _start_receive_timer(self) -> None:
        self._receive_timer = self.loop.call_later(self.receive_seconds, self._abort)

    def _stop_receive_timer(self) -> None:
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _abort(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
