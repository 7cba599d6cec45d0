"""The proxy passes everything on, and does the harm it is told to."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from .proxy import CuttingProxy


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says back what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection:
        try:
            while heard := connection.recv(65_536):
                connection.sendall(heard)
        except ConnectionError:
            return


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.settimeout(10)
    return connection


def ask(connection: socket.socket, said: bytes) -> bytes:
    """What came back before the connection ended, or as much as was said."""
    answer = b""
    try:
        connection.sendall(said)
        while len(answer) < len(said) and (more := connection.recv(65_536)):
            answer += more
    except ConnectionError:
        return answer
    return answer


def test_everything_passes_until_it_is_cut_and_new_connections_pass_again(echo: int) -> None:
    with CuttingProxy(echo) as proxy, connect(proxy.port) as one, connect(proxy.port) as other:
        long = bytes(range(256)) * 4000
        assert ask(one, long) == long
        assert ask(other, b"hello") == b"hello"
        assert proxy.connections == 2
        assert proxy.passed == 2 * (len(long) + 5)
        assert proxy.cut() == 2
        assert ask(one, b"again") == b""
        with connect(proxy.port) as third:
            assert ask(third, b"again") == b"again"


def test_while_it_refuses_nobody_passes_and_when_mended_all_do(echo: int) -> None:
    with CuttingProxy(echo) as proxy:
        proxy.cut(refuse=True)
        with connect(proxy.port) as refused:
            assert ask(refused, b"hello") == b""
        proxy.mend()
        with connect(proxy.port) as connection:
            assert ask(connection, b"hello") == b"hello"


def test_answers_end_in_the_middle(echo: int) -> None:
    with CuttingProxy(echo) as proxy, connect(proxy.port) as connection:
        proxy.truncate_after(7)
        assert not proxy.has_truncated
        assert ask(connection, b"0123456789") == b"0123456"
        assert proxy.has_truncated


def test_what_is_delayed_comes_whole_and_in_order(echo: int) -> None:
    with CuttingProxy(echo) as proxy, connect(proxy.port) as connection:
        proxy.delay(0.01)
        assert ask(connection, b"one") == b"one"
        assert ask(connection, b"two" * 1000) == b"two" * 1000


def test_what_comes_after_the_mending_does_not_overtake_what_was_held_up(echo: int) -> None:
    with CuttingProxy(echo) as proxy, connect(proxy.port) as connection:
        proxy.delay(0.3)
        connection.sendall(b"one")
        while proxy.passed < 3:
            time.sleep(0.001)
        proxy.mend()
        connection.sendall(b"two")
        with connection.makefile("rb") as heard:
            assert heard.read(6) == b"onetwo"


def test_a_server_that_is_down_is_down_through_the_proxy_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with CuttingProxy(port) as proxy, connect(proxy.port) as connection:
        assert ask(connection, b"hello") == b""
