"""The daemon of a user: hooks speak to it over a Unix socket. `python -m recollect.capture.daemon FOLDER`.

A hook that finds no daemon starts one. It listens before it loads anything heavy, and ends when no event came
for a while. Events that are to be recorded are in the spool before they are acknowledged: a daemon that is
killed loses none, and recording one twice changes nothing.
"""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from .service import HookService

SOCKET, _LOCK, _SPOOL, LOG = "hook.sock", "lock", "spool", "daemon.log"
_MOST = 8_000_000  # bytes of an event
_LARGEST_LOG = 1_000_000  # bytes
_logger = logging.getLogger("recollect.capture")


class Daemon:
    """Listens in the current folder, which is that of capture."""

    def __init__(self, idle_seconds: float, answer_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._answer_seconds = answer_seconds
        self._ready: asyncio.Future[HookService] = asyncio.get_running_loop().create_future()
        self._spooled = asyncio.Event()
        self._seen = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal ended it."""
        return self._ended.is_set()

    async def run(self) -> None:
        """Serve until nothing came for a while, or a signal arrives."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ended.set)
        _remove_socket()
        server = await asyncio.start_unix_server(self._serve, SOCKET)
        os.chmod(SOCKET, 0o600)
        try:
            await self._work()
        finally:
            server.close()
            _remove_socket()

    async def _work(self) -> None:
        from .background import open_service

        async with open_service(Path.cwd(), self._answer_seconds) as service:
            self._ready.set_result(service)
            self._spooled.set()
            recording = asyncio.create_task(self._record(service))
            await self._wait_until_idle()
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)
            await service.deliver_spool()
            await service.finish()

    async def _wait_until_idle(self) -> None:
        while not self._ended.is_set():
            self._seen.clear()
            waiting = [asyncio.create_task(each.wait()) for each in (self._seen, self._ended)]
            done, _ = await asyncio.wait(
                waiting, timeout=self._idle_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            for each in waiting:
                each.cancel()
            if not done:
                return

    async def _record(self, service: "HookService") -> None:
        while True:
            await self._spooled.wait()
            self._spooled.clear()
            await service.deliver_spool()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._seen.set()
        try:
            writer.write(await self._reply(await reader.read(_MOST) + await _rest(reader)))
            await writer.drain()
        except (OSError, ValueError) as error:
            _logger.warning("an event was refused (%s)", type(error).__name__)
        finally:
            writer.close()

    async def _reply(self, given: bytes) -> bytes:
        from .events import parse_event

        event = parse_event(given)
        service = await asyncio.shield(self._ready)
        if service.records(event):
            _spool(event.event_id, given)
            self._spooled.set()
        return b"+" + await service.answer(event)


def _remove_socket() -> None:
    Path(SOCKET).unlink(missing_ok=True)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """The rest of an event, up to the end of the stream."""
    rest = bytearray()
    while (part := await reader.read(65536)) and len(rest) < _MOST:
        rest += part
    return bytes(rest)


def _spool(name: str, event: bytes) -> None:
    Path(_SPOOL).mkdir(mode=0o700, exist_ok=True)
    safe = "".join(each for each in name if each.isalnum() or each in "-.").lstrip(".")[:80]
    temporary = Path(_SPOOL) / f".{safe}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as opened:
        opened.write(event)
    temporary.rename(Path(_SPOOL) / safe)


def _lock() -> TextIO | None:
    """The lock of the folder; `None` if another daemon has it."""
    file = open(_LOCK, "a")  # noqa: SIM115 - it is held until the process ends
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


async def _run(idle_seconds: float, answer_seconds: float) -> bool:
    """Run once. Whether it ended because nothing came."""
    daemon = Daemon(idle_seconds, answer_seconds)
    await daemon.run()
    return not daemon.is_stopped


def _has_events() -> bool:
    return any(path.is_file() and path.name[0] != "." for path in Path(_SPOOL).glob("*"))


def main(folder: str, idle: str = "900", answer: str = "0.1") -> None:
    """Run the daemon of a folder, unless one runs already.

    It ends `idle` seconds after the last event. A search has `answer` seconds.
    """
    os.umask(0o077)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chdir(folder)
    held = _lock()
    if held is None:
        return
    mode = "w" if os.path.exists(LOG) and os.path.getsize(LOG) > _LARGEST_LOG else "a"
    logging.basicConfig(filename=LOG, filemode=mode, format="%(asctime)s %(message)s", level=logging.INFO)
    _logger.info("daemon started")
    while asyncio.run(_run(float(idle), float(answer))) and _has_events():
        _logger.info("daemon goes on: events arrived while it ended")
    _logger.info("daemon ended")
    held.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
