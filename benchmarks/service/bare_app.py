"""The limit of what we stand on: FastAPI on uvicorn, which reads a body and answers.

It watches its event loop as the service does: what the machine itself adds to that is seen here.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

from recollect.server.telemetry.metrics import Metrics

_metrics = Metrics()


@asynccontextmanager
async def _watching(_: FastAPI) -> AsyncIterator[None]:
    watch = asyncio.create_task(_metrics.watch_loop())
    yield
    watch.cancel()


app = FastAPI(lifespan=_watching)


class Message(BaseModel):
    """A message."""

    role: str
    content: str


class NewConversation(BaseModel):
    """The body that is read."""

    agent_id: str
    user_id: str
    messages: list[Message]


@app.post("/v1/conversations", status_code=201)
async def create(body: NewConversation) -> dict[str, Any]:
    """Keeps nothing."""
    return {"success": True, "message_count": len(body.messages)}


@app.get("/metrics")
async def metrics() -> Response:
    """How late the event loop was."""
    return Response(_metrics.render())


def main() -> None:
    """Serve until a signal comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        print(f"bare app listens on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="warning")
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
