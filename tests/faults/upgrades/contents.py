"""What a kept database holds, written and read by whatever version of recollect runs this file.

`python contents.py write URL FEATURE …` fills a database, `read` prints what is in it as JSON. It stands
alone and uses what every release has: a release writes by its own code, and today's code reads the same.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

AGENT, USER = "assistant", "ada"
KEYED = "acme"
SESSIONS = ("plain", "a:b 'quoted' %", "历史")
ITEMS: list[Any] = [
    {"role": "user", "content": "What is 2 + 2? 二加二 \u0000 \U0001f600"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 2, "b": 2}'},
    {"type": "function_call_output", "call_id": "c1", "output": "4"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4."}]},
    {"type": "of_tomorrow", "unknown": {"deep": [1, 2.5, None, True]}},
]
TALKS = (
    ("I live in Porto, and I love pottery.", "Noted."),
    ("I moved to Lisbon on 3 March 2026.",),
)


def is_file(url: str) -> bool:
    """Whether it is a SQLite file, and no server."""
    return "://" not in url


# --- sessions ---


def open_session(url: str, session_id: str) -> Any:
    """A session of a release's own, on a file or a server."""
    import recollect

    if is_file(url):
        return recollect.SQLiteSession(session_id, url)
    return recollect.SQLAlchemySession.from_url(session_id, url=url)


async def _write_sessions(url: str) -> None:
    from recollect.sessions.protocol import SessionMetadata

    for number, session_id in enumerate(SESSIONS):
        session = open_session(url, session_id)
        await session.add_items(ITEMS)
        await session.add_items([{"role": "user", "content": f"{session_id} {place}"} for place in range(20)])
        await session.pop_item()
        await session.add_batch([{"role": "user", "content": "once"}], "batch-1")
        await session.set_metadata(SessionMetadata(USER, AGENT, f"title {number}", {"number": number}))
        await session.aclose()


async def _read_sessions(url: str) -> Any:
    return {session_id: await _read_session(url, session_id) for session_id in SESSIONS}


async def _read_session(url: str, session_id: str) -> Any:
    session = open_session(url, session_id)
    found = {
        "items": await session.get_items(),
        "newest": await session.get_items(3),
        "metadata": asdict(await session.get_metadata()),
        "positions": [each.position for each in await session.read_after(0)],
    }
    await session.aclose()
    return found


# --- branches and usage ---


def _open_advanced(url: str) -> Any:
    import recollect

    if is_file(url):
        return recollect.AdvancedSQLiteSession(session_id="advanced", db_path=url)
    return recollect.AdvancedSQLAlchemySession.from_url("advanced", url=url)


def _cost(number: int) -> Any:
    from agents.usage import Usage

    usage = Usage(requests=1, input_tokens=number, output_tokens=2, total_tokens=number + 2)
    told = [SimpleNamespace(response_id=f"resp_{number}")]
    return SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage), raw_responses=told)


async def _write_advanced(url: str) -> None:
    session = _open_advanced(url)
    for turn in range(1, 4):
        await session.add_items([{"role": "user", "content": f"turn {turn}"}, *ITEMS[1:5]])
        await session.store_run_usage(_cost(turn))
    await session.create_branch_from_turn(2, "other")
    await session.add_items([{"role": "user", "content": "elsewhere"}])
    await session.store_run_usage(_cost(100))
    await session.create_branch_from_turn(1, "empty")
    await session.switch_to_branch("other")
    await session.aclose()


async def _read_advanced(url: str) -> Any:
    session = _open_advanced(url)
    branches = await session.list_branches()
    found = {
        "branches": branches,
        "current": await session.get_items(),
        "items": {each["branch_id"]: await session.get_items(None, each["branch_id"]) for each in branches},
        "turns": {
            each["branch_id"]: await session.get_conversation_turns(each["branch_id"]) for each in branches
        },
        "tools": await session.get_tool_usage("main"),
        "usage": [await session.get_session_usage(), await session.get_turn_usage()],
    }
    await session.aclose()
    return found


# --- events and summaries ---


async def _write_beside(url: str) -> None:
    from recollect.sessions.events import EventLog
    from recollect.strategies.summaries import ConversationSummaryStore

    async with EventLog(url) as log, ConversationSummaryStore(url) as summaries:
        await log.append("plain", ITEMS, agent=AGENT, model="m", positions=range(1, 7))
        await log.append("advanced", [{"role": "user", "content": "yes"}] * 2)
        for number in range(3):
            await summaries.add("plain", f"summary {number}", agent=AGENT, covered_position=number)


async def _read_beside(url: str) -> Any:
    from recollect.sessions.events import EventLog
    from recollect.strategies.summaries import ConversationSummaryStore

    async with EventLog(url) as log, ConversationSummaryStore(url) as summaries:
        events = [event for name in ("plain", "advanced") for event in await log.read(name)]
        kept = await summaries.list_summaries("plain")
    return {"events": list(map(asdict, events)), "summaries": list(map(asdict, kept))}


# --- long-term memory ---


def _store(url: str, **options: Any) -> Any:
    from recollect.memory.store import MemoryStore

    return MemoryStore(url, **options)


async def _write_memory(url: str) -> None:
    async with _store(url, workers=1) as store:
        for talk in TALKS:
            roles = ("user", "assistant")
            said = [{"role": role, "content": text} for role, text in zip(roles, talk, strict=False)]
            await store.record_conversation(AGENT, USER, said)
            await store.drain(120)
        await store.add_entry(AGENT, USER, "profile", "The user sails.")
    async with _store(url, workers=0, embedder=None) as store:  # somebody whose run is still to come
        await store.record_conversation(AGENT, "later", [{"role": "user", "content": "I live in Oslo."}])


async def _read_memory(url: str) -> Any:
    async with _store(url, workers=0, embedder=None) as store:
        entries = await store.list_entries(AGENT, USER, include_retired=True)
        memory = await store.get_memory(AGENT, USER)
        return {
            "memory": memory.to_dict(),
            "why": {entry.content_id: (await store.why(entry.content_id)).to_dict() for entry in entries},
            "exports": [await store.export_user(user) for user in (USER, "later")],
            "coverage": asdict(await store.coverage()),
        }


# --- the service ---


@asynccontextmanager
async def _serving(url: str) -> Any:
    import httpx2

    from recollect.server.app import create_app
    from recollect.server.settings import Settings

    quiet = {"memory": {"workers": 0, "embedder": "none"}, "database": {"url": url}}
    app = create_app(Settings.model_validate(quiet))
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def _write_service(url: str) -> None:
    async with _serving(url) as client:
        body = {"agent_id": AGENT, "user_id": "served", "messages": [{"role": "user", "content": "I sail."}]}
        for _ in range(2):  # once, under the same key
            await client.post("/v1/conversations", json=body, headers={"Idempotency-Key": "one"})
        chat = {"user_id": "served", "message": "Hello.", "memory_strategy": {"mode": "none"}}
        answer = (await client.post("/v1/chat", json=chat)).json()
        place = {"conversation_id": answer["conversation_id"]}
        await client.post("/v1/chat", json={"message": "And again.", **place})
        branches = f"/v1/conversations/{answer['conversation_id']}/branches"
        (await client.post(branches, json={"from_turn": 2, "name": "other"})).raise_for_status()
    await _make_keys(url)


async def _make_keys(url: str) -> None:
    from recollect.server.access.keys import KeyStore

    async with KeyStore(url) as keys:
        await keys.create(KEYED, "admin", name="kept")
        revoked, _ = await keys.create(KEYED, "read", name="gone")
        await keys.revoke(revoked.key_id)


async def _read_service(url: str) -> Any:
    from recollect.server.access.audit import AuditLog
    from recollect.server.access.keys import KeyStore

    async with KeyStore(url) as keys, AuditLog(url) as audit, _store(url, workers=0, embedder=None) as store:
        return {
            "keys": [asdict(key) for key in await keys.list()],
            "audit": [asdict(entry) for entry in await audit.list("default", limit=200)],
            "export": await store.export_user("served"),
        }


# --- all of it ---

Part = Callable[[str], Awaitable[Any]]
PARTS: dict[str, tuple[Part, Part]] = {
    "sessions": (_write_sessions, _read_sessions),
    "advanced": (_write_advanced, _read_advanced),
    "beside": (_write_beside, _read_beside),
    "memory": (_write_memory, _read_memory),
    "service": (_write_service, _read_service),
}


async def write(url: str, features: list[str]) -> None:
    """Fill a database that has its tables, or a file."""
    for feature in features:
        await PARTS[feature][0](url)


async def read(url: str, features: list[str]) -> dict[str, Any]:
    """All that `write` has written, as JSON has it."""
    found = {feature: await PARTS[feature][1](url) for feature in features}
    told: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return told


if __name__ == "__main__":
    what, place, *named = sys.argv[1:]
    told = asyncio.run({"write": write, "read": read}[what](place, named))
    print(json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True))
