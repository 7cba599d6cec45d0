"""What the service stands on: FastAPI on uvicorn with one route, and nothing of ours."""

import socket

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def answer() -> dict[str, str]:
    """Answer."""
    return {"state": "ready"}


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets
        print(f"listens on http://127.0.0.1:{sockets[0].getsockname()[1]}", flush=True)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    _Server(uvicorn.Config(app, access_log=False)).run([listener])
