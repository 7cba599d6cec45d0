"""Logs: structured, with request ids, and without anything that somebody said."""

import asyncio
import errno
import io
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from recollect.server.settings import LoggingSettings
from recollect.server.telemetry.logs import (
    begin_request,
    configure_logging,
    current_request_id,
    describe_error,
    log_unexpected,
)

PLANTED = "planted-contents"
_NAMES = ("", "recollect", "uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _NAMES]
    before = [(each.handlers, each.level, each.propagate) for each in loggers]
    yield
    for each, (handlers, level, propagate) in zip(loggers, before, strict=True):
        each.handlers, each.level, each.propagate = handlers, level, propagate
        each.setLevel(level)  # forgets what was remembered of levels


def _fail() -> None:
    try:
        raise ValueError(PLANTED)
    except ValueError as cause:
        raise RuntimeError(f"about {PLANTED}") from cause


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    text = capsys.readouterr().err
    assert PLANTED not in text
    return text.splitlines()


def test_a_line_is_an_object_with_what_was_given_besides(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings())
    logging.getLogger("recollect.access").info("request", extra={"status": 200, "tenant": "acme"})
    [line] = _lines(capsys)
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "INFO",
        "logger": "recollect.access",
        "message": "request",
        "status": 200,
        "tenant": "acme",
    }


def test_lines_of_text_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings(format="text"))
    logging.getLogger("recollect.access").info("request", extra={"status": 200})
    logging.getLogger("recollect.server").warning("something", extra={"status": 200})
    request, other = _lines(capsys)
    assert request.endswith("INFO recollect.access request 200")
    assert other.endswith("WARNING recollect.server something status=200")


def test_a_request_is_easy_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings(format="text"))
    fields = {"method": "GET", "route": "/v1/runs", "status": 200, "duration_ms": 3.25, "tenant": "acme"}
    logging.getLogger("recollect.access").info("request", extra=fields)
    [line] = _lines(capsys)
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d INFO recollect.access request GET /v1/runs 200 3.25 ms tenant=acme", line
    )


@pytest.mark.parametrize(
    ("chosen", "is_terminal", "is_json"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("text", False, False)],
)
def test_lines_are_text_on_a_terminal_and_json_elsewhere_unless_one_is_chosen(
    monkeypatch: pytest.MonkeyPatch, chosen: str, is_terminal: bool, is_json: bool
) -> None:
    with _pseudo_terminal() as (terminal, shown), tempfile.TemporaryFile("w+") as file:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setattr(sys, "stderr", terminal if is_terminal else file)
        configure_logging(LoggingSettings.model_validate({"format": chosen}))
        logging.getLogger("recollect.server").warning("something", extra={"count": 3})
        file.seek(0)
        line = shown() if is_terminal else file.readline()
    assert line.startswith("{") is is_json
    assert ("\x1b[33m" in line) is (is_terminal and not is_json)


@contextmanager
def _pseudo_terminal() -> Iterator[tuple[IO[str], Callable[[], str]]]:
    """A terminal to write to, and what it shows."""
    shown, written = os.openpty()
    with os.fdopen(written, "w", buffering=1) as terminal:
        yield terminal, lambda: os.read(shown, 10_000).decode()
    os.close(shown)


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_exception_is_told_by_its_type_and_place(capsys: pytest.CaptureFixture[str], form: str) -> None:
    configure_logging(LoggingSettings.model_validate({"format": form}))
    try:
        _fail()
    except RuntimeError as error:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
        log_unexpected(error)
    lines = _lines(capsys)
    assert len(lines) == 2
    for line in lines:
        assert "RuntimeError at " in line
        assert ", from ValueError at " in line
        assert "test_logs.py:" in line


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_words_of_other_packages_are_left_out(capsys: pytest.CaptureFixture[str], form: str) -> None:
    configure_logging(LoggingSettings.model_validate({"format": form, "level": "debug"}))
    foreign = logging.getLogger("openai.agents")
    foreign.warning("the model said %s", PLANTED)
    foreign.error(f"the model said {PLANTED}", exc_info=ValueError(PLANTED))
    foreign.info("sending %s", PLANTED)
    warned, failed = _lines(capsys)
    assert "message of openai.agents at test_logs.py:" in warned
    assert "ValueError" in failed


def test_uvicorn_writes_no_access_log_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings(level="debug"))
    logging.getLogger("uvicorn.access").info("GET /v1/users?user_id=%s", PLANTED)
    assert _lines(capsys) == []


def test_nothing_below_the_level_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings(level="warning"))
    logging.getLogger("recollect.access").info("request")
    assert _lines(capsys) == []


def test_a_line_names_its_request(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings())
    begin_request("from-the-caller.1")
    logging.getLogger("recollect.memory").warning("something")
    assert json.loads(_lines(capsys)[0])["request_id"] == "from-the-caller.1"


@pytest.mark.parametrize("sane", ["a", "A-1_b.c", "x" * 128])
def test_a_sane_request_id_is_taken_over(sane: str) -> None:
    assert begin_request(sane) == sane
    assert current_request_id() == sane


@pytest.mark.parametrize("other", [None, "", "x" * 129, "a b", "a\nb", "ü", "a\r\nX: y", "a/b"])
def test_any_other_is_made_anew(other: str | None) -> None:
    made = begin_request(other)
    assert made != other
    assert len(made) == 32
    assert begin_request(other) != made


def test_a_chain_of_causes_without_end_is_cut() -> None:
    error: BaseException = ValueError("0")
    for _ in range(50):
        outer = KeyError("x")
        outer.__cause__ = error
        error = outer
    assert describe_error(error).count("KeyError") == 5


def test_an_event_loop_writes_lines_together_and_a_warning_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(LoggingSettings(format="text"))
    log = logging.getLogger("recollect.access")

    async def serve() -> tuple[list[str], list[str], list[str]]:
        log.info("one")
        log.info("two")
        at_first = _lines(capsys)
        log.warning("three")
        with_the_warning = _lines(capsys)
        log.info("four")
        async with asyncio.timeout(10):
            while not (later := _lines(capsys)):  # noqa: ASYNC110 - it is written by a timer
                await asyncio.sleep(0.01)
        return at_first, with_the_warning, later

    parts = asyncio.run(serve())
    assert [_messages(part) for part in parts] == [[], ["one", "two", "three"], ["four"]]


def test_lines_of_a_loop_that_has_ended_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LoggingSettings(format="text"))
    log = logging.getLogger("recollect.access")

    async def serve(line: str) -> None:
        log.info(line)

    asyncio.run(serve("one"))
    asyncio.run(serve("two"))
    logging.root.handlers[0].flush()  # as at the end of the process
    assert _messages(_lines(capsys)) == ["one", "two"]


class _Broken(io.StringIO):
    """A stream that nothing can be written to, as a file on a full disk."""

    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "no space")


def test_lines_that_cannot_be_written_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Broken())
    configure_logging(LoggingSettings())
    log = logging.getLogger("recollect.access")

    async def serve() -> str:
        log.info("soon")
        log.warning("now")
        log.info("soon")
        await asyncio.sleep(0.1)
        return "served"

    assert asyncio.run(serve()) == "served"


def _messages(lines: list[str]) -> list[str]:
    return [line.split(" ")[3] for line in lines]
