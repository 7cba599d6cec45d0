"""Requests to the service: the answer is what was asked for, or a problem of the sender's."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode

from recollect.server.app import create_app
from recollect.server.settings import Settings

from ..supply import Supply
from ..target import Check
from .imports import change

_SETTINGS = {
    "memory": {"embedder": "none", "workers": 0, "own_process": False},
    "telemetry": {"metrics": False},
}
_HEADERS = ("if-match", "idempotency-key", "x-request-id", "accept", "authorization")
_ERASES = ("DELETE", "/v1/users")  # what is asked for is then made again
_STREAMS = "text/event-stream"


@dataclass
class _Service:
    """The application, called as a server calls it."""

    app: Any
    operations: list[tuple[str, str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    users: Iterator[int] = field(default_factory=count)

    async def prepare(self) -> None:
        """Learn what can be asked, and make something to ask for."""
        document = self.app.openapi()
        for path, methods in document["paths"].items():
            self.operations += [
                (method.upper(), path, {**operation, "example": _example(operation, document)})
                for method, operation in methods.items()
            ]
        await self.make()

    async def make(self) -> None:
        """Make something to ask for, of users of whom nothing is stored yet."""
        number = next(self.users)
        one, other = f"u{number}", f"v{number}"
        said = [{"role": "user", "content": "I live in Lisbon."}]
        talk = {"agent_id": "a", "user_id": one, "messages": said}
        _, made = await self.ask("POST", "/v1/conversations", json.dumps(talk).encode())
        known = {"agent_id": "a", "user_id": other, "profile_content": ["Likes rain."]}
        _, memory = await self.ask("POST", "/v1/memories", json.dumps(known).encode())
        _, entries = await self.ask("GET", f"/v1/memories/{memory['memory_id']}/entries")
        entry = entries["items"][0]["content_id"]
        self.ids = ["nobody", one, other, made["conversation_id"], memory["memory_id"], entry]

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the body of the answer."""
        path, _, query = target.partition("?")
        given = {"host": "localhost", "content-type": "application/json", **(headers or {})}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode("utf-8", "surrogateescape"),
            "query_string": query.encode("latin-1", "replace"),
            "root_path": "",
            "scheme": "http",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in given.items()],
        }
        return await _answered(self.app, scope, body)


async def _answered(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, Any]:
    told: list[Any] = []
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(sent, None) or await asyncio.Event().wait()  # nobody hangs up

    async def send(message: Any) -> None:
        told.append(message)

    await app(scope, receive, send)
    said = b"".join(message.get("body", b"") for message in told[1:])
    kind = dict(told[0]["headers"]).get(b"content-type", b"").decode().partition(";")[0]
    return told[0]["status"], json.loads(said) if kind.endswith("json") else None


def _example(operation: Any, document: Any) -> Any:
    """A body that the service takes, if it takes any."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    reference = content.get("schema", {}).get("$ref", "")
    described = document["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return next(iter(described.get("examples", [])), None)


async def _check_request(service: _Service, supply: Supply) -> None:
    """Some requests, of which each may ask for what those before it made."""
    made: list[str] = []
    for _ in range(1 + supply.number(4)):
        method, path, operation = supply.choose(service.operations)
        body = _body(operation["example"], supply)
        headers = {name: _header(supply) for name in _HEADERS if supply.byte() % 8 == 0}
        target = _target(path, operation, [*made, *service.ids], supply)
        status, told = await service.ask(method, target, body, headers)
        assert status < 500, f"{method} {path} is answered {status}"
        assert status < 400 or told["code"], "a refusal has no code"
        if (method, path) == _ERASES and status < 400:
            await service.make()
        made += [value for name, value in _fields(told) if name.endswith("_id") and isinstance(value, str)]


def _fields(told: Any) -> Iterable[tuple[str, Any]]:
    return told.items() if isinstance(told, dict) else ()


def _target(path: str, operation: Any, ids: list[str], supply: Supply) -> str:
    query = []
    for parameter in operation.get("parameters", ()):
        name = parameter["name"]
        value = supply.choose(ids) if supply.byte() % 4 else supply.text()
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(value or "x", safe="", errors="replace"))
        elif parameter["in"] == "query" and (parameter.get("required") or supply.byte() % 3 == 0):
            query.append((name, value if supply.byte() % 2 else str(supply.value())))
    return f"{path}?{urlencode(query, errors='replace')}" if query else path


def _header(supply: Supply) -> str:
    return supply.take(supply.number(32)).decode("latin-1").replace("\n", "").replace("\r", "")


def _body(example: Any, supply: Supply) -> bytes:
    if example is None:
        return b""
    if supply.byte() % 16 == 0:
        return supply.take(supply.number(64))
    document = deepcopy(example)
    for _ in range(supply.number(4)):
        change(document, supply)
    return json.dumps(document).encode()


@contextmanager
def open_requests() -> Iterator[Check]:
    """A service of its own."""
    with asyncio.Runner() as runner, TemporaryDirectory(prefix="recollect-fuzzing-") as folder:
        database = {"url": f"{folder}/recollect.db"}
        app = create_app(Settings.model_validate({**_SETTINGS, "database": database}))
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        service = _Service(app)
        runner.run(service.prepare())
        yield lambda data: runner.run(_check_request(service, Supply(data)))
        runner.run(lifespan.__aexit__(None, None, None))
