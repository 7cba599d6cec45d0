"""A server for the SDK's compaction on the loopback, and a story that runs compact."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
from agents import OpenAIResponsesCompactionSession, RunConfig, Runner
from agents.testing import ScriptedModel

from recollect.testing.contract import message

from .scenarios import Item, Scenario, answer, call, desk

UNTRACED = RunConfig(tracing_disabled=True)
HISTORY: list[Item] = [
    item for n in range(6) for item in (message(f"q{n}"), {"role": "assistant", "content": f"a{n}"})
]


class Compactor(ThreadingHTTPServer):
    """Answers `POST /v1/responses/compact` with the user messages and a compaction item, or with an error."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CompactHandler)
        self.requests: list[Item] = []
        self.status = 200
        self.also: list[Item] = []  # further items of every answer

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def compacted(self, items: list[Item]) -> Item:
        users = [
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
        made = {"id": "cmp_1", "type": "compaction", "encrypted_content": f"gAAAAA of {len(items)}"}
        return {
            "id": "resp_compact",
            "object": "response.compaction",
            "created_at": 1_700_000_000,
            "output": [*self.also, *users, made],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 2,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 12,
            },
        }


def _parts(content: Any) -> list[Item]:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


class CompactHandler(BaseHTTPRequestHandler):
    server: Compactor
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        if self.path != "/v1/responses/compact":
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})
        elif self.server.status != 200:
            self._send(self.server.status, {"error": {"message": "not now"}})
        else:
            self._send(200, self.server.compacted(body.get("input", [])))

    def _send(self, status: int, document: Item) -> None:
        payload = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def running_compactor() -> Iterator[Compactor]:
    with Compactor() as compactor:
        thread = threading.Thread(target=compactor.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield compactor
        compactor.shutdown()
        thread.join()


@asynccontextmanager
async def compacting(
    server: Compactor, underlying: Any, **options: Any
) -> AsyncIterator[OpenAIResponsesCompactionSession]:
    async with openai.AsyncOpenAI(api_key="none", base_url=server.base_url, max_retries=0) as client:
        yield OpenAIResponsesCompactionSession("s", underlying, client=client, **options)


STORY = Scenario(
    ["1+2?", "weather?", "thanks", "bye"],
    lambda: [
        [call("add", a=1, b=2)],
        answer("3"),
        [call("weather", "p", city="Paris"), call("weather", "r", city="Rome")],
        answer("sunny"),
        answer("welcome"),
        answer("bye"),
    ],
    "",
)


async def stored_by_runs(
    server: Compactor,
    underlying: Any,
    *,
    around: Callable[[Any], Any] = lambda session: session,
    streamed: bool = False,
    threshold: int = 5,
    **options: Any,
) -> list[Any]:
    """What the store holds after each turn, when runs compact what has so many items to compact.

    `around` wraps the session that compacts.
    """
    model = ScriptedModel(STORY.steps())
    stored = []

    def enough(context: dict[str, Any]) -> bool:
        return len(context["compaction_candidate_items"]) >= threshold

    async with compacting(server, underlying, should_trigger_compaction=enough, **options) as compaction:
        session = around(compaction)
        for turn in STORY.turns:
            if streamed:
                result = Runner.run_streamed(desk(model), turn, session=session, run_config=UNTRACED)
                async for _ in result.stream_events():
                    pass
            else:
                await Runner.run(desk(model), turn, session=session, run_config=UNTRACED)
            stored.append(await underlying.get_items(100))
    model.assert_complete()
    return stored
