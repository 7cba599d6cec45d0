"""The command of a hook: hands an event of a coding agent to the daemon of the user, and prints its answer.

    python -I -S hook_client.py AGENT FOLDER [SECONDS] < EVENT

It runs at every prompt, so it imports nothing but built-in modules. It ends before its deadline and always
with 0: an agent is never held up and never sees a failure. What the daemon did not take goes to the spool.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys
import time

_DEADLINE = "0.12"  # seconds of the 150 ms; the rest is the start of Python
_MOST = 8_000_000  # bytes of an event
_SOCKET, _PAUSED, _STARTED = "hook.sock", "paused", "started"
_BETWEEN_STARTS = 5  # seconds, in which a daemon begins to listen


def main(agent: str, folder: str, deadline: str = _DEADLINE) -> None:
    """Deliver the event on standard input, or leave it in the spool."""
    event = bytearray()
    name = f"{os.times().elapsed:.2f}-{os.urandom(8).hex()}"

    def give_up(*_: object) -> None:
        if event:
            _spool(name, bytes(event))
        os._exit(0)

    _signal.signal(_signal.SIGALRM, give_up)
    _signal.setitimer(_signal.ITIMER_REAL, float(deadline))
    os.chdir(folder)  # the path of a socket may be too long otherwise
    found = os.stat(".")
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or os.path.exists(_PAUSED):
        return
    event += f"{agent} {name}\n".encode()
    while part := os.read(0, 65536):
        event += part
        if len(event) > _MOST:
            event.clear()
            return
    answer = _ask(bytes(event))
    if not answer.startswith(b"+"):
        _spool(name, bytes(event))
        _start_daemon()
    else:
        os.write(1, answer[1:])


def _ask(event: bytes) -> bytes:
    """The answer of the daemon; empty if it is not there."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    answer = b""
    try:
        connection.connect(_SOCKET)
        sent = memoryview(event)
        while sent:
            sent = sent[connection.send(sent) :]
        connection.shutdown(_socket.SHUT_WR)
        while part := connection.recv(65536):
            answer += part
    except OSError:
        return b""
    return answer


def _spool(name: str, event: bytes) -> None:
    """Write the event where the daemon finds it: completely, or not at all."""
    os.makedirs("spool", mode=0o700, exist_ok=True)
    temporary = f"spool/.{name}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(file, event)
    os.close(file)
    os.rename(temporary, f"spool/{name}")


def _start_daemon() -> None:
    """Start the daemon in a session of its own, unless another hook has just done so."""
    try:
        if 0 <= time.time() - os.stat(_STARTED).st_mtime < _BETWEEN_STARTS:
            return
    except FileNotFoundError:
        pass
    os.close(os.open(_STARTED, os.O_WRONLY | os.O_CREAT, 0o600))
    os.utime(_STARTED)
    if os.fork():
        return
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.execv(sys.executable, [sys.executable, "-m", "recollect.capture.daemon", "."])


def _log(words: str) -> None:
    try:
        path = os.path.join(sys.argv[2], "hook.log")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"hook failed ({words})\n".encode())
    except (OSError, IndexError):
        os._exit(0)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except BaseException as error:  # noqa: BLE001 - the process ends here; an agent must never see a failure
        _log(type(error).__name__)
    os._exit(0)
