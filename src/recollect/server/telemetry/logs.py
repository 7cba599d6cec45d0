"""Structured logs, for people on a terminal and as JSON elsewhere. Each line has the id of its request.

None contains contents. Our own messages consist of ids, counts and fixed phrases. Messages of other packages
may quote contents or secrets, so they are replaced by the name of the package and the place in its code. An
exception is logged as its type and the place where it was raised.
"""

import asyncio
import logging
import os
import re
import sys
import traceback
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO, TypeAlias

from pythonjsonlogger.msgspec import MsgspecFormatter

from ...ids import new_hex
from ..settings import LoggingSettings

_Raised: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_OURS = ("recollect", "uvicorn")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_TIME = "%H:%M:%S"
_ACCESS_LOG = "recollect.access"
_ACCESS = ("method", "route", "status", "duration_ms")  # shown without their names
_COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}  # yellow and red, in ANSI
_MAX_CAUSES = 5
_FLUSH_SECONDS = 0.02

_request_id: ContextVar[str | None] = ContextVar("recollect_request_id", default=None)
_log = logging.getLogger("recollect.server")


def current_request_id() -> str | None:
    """The id of the request being served; `None` outside of a request."""
    return _request_id.get()


def begin_request(given: str | None) -> str:
    """Set the id of the current request: the caller's own if it is well-formed, else a new one."""
    request_id = given if given is not None and _REQUEST_ID.fullmatch(given) else new_hex()
    _request_id.set(request_id)
    return request_id


def log_unexpected(error: BaseException) -> None:
    """Log an unexpected error: its type and place and those of its causes, without its message."""
    _log.error("request failed unexpectedly", extra={"error": describe_error(error)})


def describe_error(error: BaseException) -> str:
    """The type of an error and where it was raised, with its causes. The message is left out."""
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < _MAX_CAUSES:
        chain.append(_type_and_place(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return ", from ".join(chain)


def _type_and_place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    name = type(error).__name__
    return f"{name} at {frames[-1].filename}:{frames[-1].lineno}" if frames else name


def configure_logging(settings: LoggingSettings) -> None:
    """Log to standard error as the settings say. Replaces any earlier logging configuration."""
    handler = _BatchingHandler(sys.stderr)
    handler.addFilter(_without_contents)
    handler.addFilter(_with_request_id)
    handler.setFormatter(_formatter(settings.format, is_terminal=sys.stderr.isatty()))
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)  # for other packages
    for name in _OURS:
        logging.getLogger(name).setLevel(settings.level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = name != "uvicorn.access"  # our access log replaces it


class _BatchingHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of an event loop together, many times a second, and every warning at once.

    A write lets other threads run, so one for each request would slow the event loop down.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._scheduled_on: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line for the next write, or write it now."""
        try:
            self._lines.append(self.format(record) + self.terminator)
        except Exception:  # noqa: BLE001 - as every handler: a line that cannot be formatted stops no request
            self.handleError(record)
            return
        if record.levelno >= logging.WARNING or not self._schedule():
            self.flush()

    def flush(self) -> None:
        """Write the lines that were kept. Those that cannot be written are lost, and no request fails."""
        with self.lock or nullcontext(), suppress(OSError, ValueError):  # a full disk, or a closed stream
            self._scheduled_on = None
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
            super().flush()

    def _schedule(self) -> bool:
        """Flush soon, if an event loop runs in this thread."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._scheduled_on is not loop:  # another loop may have ended before its time to flush
            loop.call_later(_FLUSH_SECONDS, self.flush)
            self._scheduled_on = loop
        return True


def _formatter(chosen: str, *, is_terminal: bool) -> logging.Formatter:
    if chosen == "json" or (chosen == "auto" and not is_terminal):
        return _JsonLines()
    return _TextLines(has_colours=is_terminal and not os.environ.get("NO_COLOR"))


def _without_contents(record: logging.LogRecord) -> bool:
    if record.name.partition(".")[0] not in _OURS:
        record.msg, record.args = f"message of {record.name} at {record.filename}:{record.lineno}", None
    return True


def _with_request_id(record: logging.LogRecord) -> bool:
    request_id = _request_id.get()
    if request_id is not None and not hasattr(record, "request_id"):
        record.request_id = request_id
    return True


class _JsonLines(MsgspecFormatter):
    """One JSON object per line."""

    def __init__(self) -> None:
        renamed = {"levelname": "level", "name": "logger", "exc_info": "error"}
        super().__init__(
            ["levelname", "name", "message"],
            rename_fields=renamed,
            # uvicorn repeats its message there, in colours.
            reserved_attrs=[*_RESERVED, "color_message"],
        )

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """The fields of a line, with the time."""
        return super().process_log_record({**log_data, "time": datetime.now(UTC).isoformat()})

    def formatException(self, raised: _Raised) -> str:  # noqa: N802 - its name in the standard library
        """The type and the place of an exception."""
        return describe_error(raised[1]) if raised[1] is not None else ""


class _TextLines(logging.Formatter):
    """The message, followed by the extra fields as `name=value`. A request shows its main fields first."""

    def __init__(self, *, has_colours: bool = False) -> None:
        super().__init__(_TEXT, _TIME)
        self._has_colours = has_colours

    def format(self, record: logging.LogRecord) -> str:
        """The formatted line."""
        raised, record.exc_info = record.exc_info, None
        fields = _extras(record)
        access = [f"{fields.pop(name)}" for name in _ACCESS if name in fields and record.name == _ACCESS_LOG]
        error = {"error": describe_error(raised[1])} if raised and raised[1] is not None else {}
        line = " ".join([super().format(record), *_with_unit(access), *_named(fields | error)])
        colour = _COLOURS.get(record.levelno) if self._has_colours else None
        return line if colour is None else f"\x1b[{colour}m{line}\x1b[0m"


def _with_unit(access: list[str]) -> list[str]:
    return access if len(access) < len(_ACCESS) else [*access[:-1], f"{access[-1]} ms"]


def _named(fields: dict[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in fields.items()]


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    known = {*_RESERVED, "color_message"}
    return {name: value for name, value in vars(record).items() if name not in known}


_RESERVED = [*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"]
