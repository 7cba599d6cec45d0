"""The SDK's compaction, offline: its own session and client, and a server here that answers at once.

The server keeps what a user said and one item for the rest, as the real one does; what that takes a model is
not in the figures.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import agents
import openai

from ..shared.items import SESSION

Item = dict[str, Any]

_USAGE = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Compact what was sent."""
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        payload = json.dumps(_compacted(given.get("input", []))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def _compacted(items: list[Item]) -> Item:
    said = [
        {
            "id": f"msg_{number}",
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": _parts(item["content"]),
        }
        for number, item in enumerate(items)
        if item.get("role") == "user"
    ]
    rest = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAA"}
    made = {"id": "resp_1", "object": "response.compaction", "created_at": 0, "usage": _USAGE}
    return {**made, "output": [*said, rest]}


def _parts(content: Any) -> Any:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


class SDKCompactingSession:
    """What the Runner does with the SDK's compaction session: read, add, and compact when it is time."""

    def __init__(self, path: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
        self._under = agents.SQLiteSession(SESSION, path)
        self._session = agents.OpenAIResponsesCompactionSession(SESSION, self._under, client=self._client)

    async def get_items(self) -> list[Any]:
        """What the model is to see."""
        return await self._session.get_items()

    async def add_items(self, items: list[Any]) -> None:
        """Append, and compact if there is enough to compact."""
        await self._session.add_items(items)
        await self._session.run_compaction({"compaction_mode": "input"})

    async def aclose(self) -> None:
        """Close the file, the client and the server."""
        self._under.close()
        await self._client.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
