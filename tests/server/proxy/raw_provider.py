"""A provider that sends exactly the bytes of a test, and keeps those that it got."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


@dataclass
class RawProvider:
    """Answers each connection with the next script: bytes to send, or an event to wait for."""

    url: str = ""
    scripts: list[Sequence[bytes | threading.Event]] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the other side closes a connection before the script has ended."""

    def answer(self, *script: bytes | threading.Event) -> None:
        """Queue the answer to the next call."""
        self.scripts.append(script)

    def reset(self) -> None:
        """Forget all calls and answers."""
        self.scripts.clear()
        self.requests.clear()
        self.hung_up.clear()

    def hang_up_on(self, url: str, body: dict[str, Any]) -> None:
        """Send a call to a proxy, and hang up as soon as it has been passed on to this provider."""
        passed_on, parts = len(self.requests), urlsplit(url)
        caller = HTTPConnection(parts.netloc, timeout=60)
        caller.request("POST", parts.path, json.dumps(body), {"Content-Type": "application/json"})
        while len(self.requests) == passed_on:
            time.sleep(0.01)
        caller.close()

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            self.requests.append(_read_request(connection))
            for step in self.scripts.pop(0):
                if isinstance(step, bytes):
                    connection.sendall(step)
                elif not self._wait(connection, step):
                    return

    def _wait(self, connection: socket.socket, event: threading.Event) -> bool:
        """Whether the event came before the other side hung up."""
        connection.settimeout(0.01)
        while not event.is_set():
            try:
                if not connection.recv(1):
                    self.hung_up.set()
                    return False
            except TimeoutError:
                continue
            except OSError:
                self.hung_up.set()
                return False
        connection.settimeout(None)
        return True


@contextmanager
def raw_provider() -> Iterator[RawProvider]:
    """A raw provider on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        provider = RawProvider(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=provider.serve, args=(listener,), daemon=True)
        thread.start()
        yield provider
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def _read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    while lengths and len(body) < int(lengths[0]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http(body: bytes, kind: str = "application/json", status: str = "200 OK", *headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body


def stream_head(*headers: str) -> bytes:
    """The head of a stream, whose chunks follow."""
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """A chunk; an empty one ends the stream."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
