"""Our session inside the SDK's compaction session, with a real client and a server on the loopback."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import OpenAIResponsesCompactionSession, RunConfig, Runner
from agents.testing import ScriptedModel

from recollect import SessionMetadata, SQLiteSession
from recollect.testing.contract import in_event_loop, message

from .scenarios import Item, Scenario, answer, both_sessions, call, desk, in_short

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
            "output": [*users, made],
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


@pytest.fixture
def server() -> Iterator[Compactor]:
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


@in_event_loop
async def test_compaction_replaces_the_history(tmp_path: Path, server: Compactor) -> None:
    found = []
    with both_sessions(tmp_path) as sessions:
        for underlying in sessions:
            async with compacting(server, underlying) as session:
                await session.add_items(HISTORY)  # type: ignore[arg-type]
                await session.run_compaction({"force": True})
                found.append(await underlying.get_items())
                await session.add_items([message("since")])  # type: ignore[list-item]
                assert (await underlying.get_items())[:-1] == found[-1]
    assert [request["input"] for request in server.requests] == [HISTORY, HISTORY]
    assert found[0] == found[1]
    assert in_short(found[0]) == "UUUUUUK"
    assert found[0][-1]["encrypted_content"] == "gAAAAA of 12"


@in_event_loop
async def test_compaction_with_a_default_limit_replaces_the_whole_history(
    tmp_path: Path, server: Compactor
) -> None:
    found = []
    with both_sessions(tmp_path, session_settings={"limit": 3}) as sessions:
        for underlying in sessions:
            await underlying.add_items(HISTORY)
            async with compacting(server, underlying) as session:
                await session.run_compaction({"force": True})
            found.append(await underlying.get_items(100))
    assert server.requests[0] == server.requests[1]
    assert found[0] == found[1]
    assert in_short(found[0]) == "UK"


@pytest.mark.parametrize("status", [400, 500])
@in_event_loop
async def test_a_compaction_that_fails_leaves_the_history(
    tmp_path: Path, server: Compactor, status: int
) -> None:
    server.status = status
    with both_sessions(tmp_path) as (ours, _):
        await ours.add_items(HISTORY)
        async with compacting(server, ours) as session:
            with pytest.raises(openai.APIStatusError):
                await session.run_compaction({"force": True})
            assert await ours.get_items() == HISTORY
            server.status = 200
            await session.run_compaction({"force": True})
            assert in_short(await ours.get_items()) == "UUUUUUK"


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
    server: Compactor, underlying: Any, *, streamed: bool = False, threshold: int = 5, **options: Any
) -> list[Any]:
    """What the store holds after each turn, when runs compact what has so many items to compact."""
    model = ScriptedModel(STORY.steps())
    stored = []

    def enough(context: dict[str, Any]) -> bool:
        return len(context["compaction_candidate_items"]) >= threshold

    async with compacting(server, underlying, should_trigger_compaction=enough, **options) as session:
        for turn in STORY.turns:
            if streamed:
                result = Runner.run_streamed(desk(model), turn, session=session, run_config=UNTRACED)  # type: ignore[arg-type]
                async for _ in result.stream_events():
                    pass
            else:
                await Runner.run(desk(model), turn, session=session, run_config=UNTRACED)  # type: ignore[arg-type]
            stored.append(await underlying.get_items(100))
    model.assert_complete()
    return stored


@pytest.mark.parametrize("mode", ["input", "previous_response_id"])
@pytest.mark.parametrize("streamed", [False, True])
@in_event_loop
async def test_runs_compact_as_they_do_on_the_sdks_session(
    tmp_path: Path, server: Compactor, streamed: bool, mode: Any
) -> None:
    with both_sessions(tmp_path) as (ours, theirs):
        found = await stored_by_runs(server, ours, streamed=streamed, compaction_mode=mode)
        requests, server.requests = server.requests, []
        expected = await stored_by_runs(server, theirs, streamed=streamed, compaction_mode=mode)
    assert found == expected
    assert requests == server.requests
    assert len(requests) == 1
    compacted = "UUK" if mode == "input" else "K"
    assert [in_short(items) for items in found] == ["UCOA", compacted, f"{compacted}UA", f"{compacted}UAUA"]


@in_event_loop
async def test_runs_compact_what_the_model_saw_of_a_limited_history(
    tmp_path: Path, server: Compactor
) -> None:
    with both_sessions(tmp_path, session_settings={"limit": 3}) as sessions:
        found = [await stored_by_runs(server, s, threshold=2, compaction_mode="input") for s in sessions]
    assert found[0] == found[1]
    assert [in_short(items) for items in found[1]] == ["UK", "UUK", "UUKUA", "UUKUUK"]


@in_event_loop
async def test_compaction_keeps_whose_session_it_is(tmp_path: Path, server: Compactor) -> None:
    owner = SessionMetadata(user_id="anna", title="Weather")
    with closing(SQLiteSession("s", tmp_path / "ours.db")) as ours:
        await ours.add_items(HISTORY)
        await ours.set_metadata(owner)
        async with compacting(server, ours) as session:
            await session.run_compaction({"force": True})
        assert in_short(await ours.get_items()) == "UUUUUUK"
        assert await ours.get_metadata() == owner
