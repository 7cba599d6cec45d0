"""The design to compare with, written with an SDK alone: the model is asked, and then all is stored."""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any

import openai

from .helpers import API_KEY

_TABLES = (
    "CREATE TABLE message (conversation TEXT, place INTEGER, role TEXT, content TEXT)",
    "CREATE TABLE memory (id TEXT PRIMARY KEY, owner TEXT, kind TEXT, content TEXT)",
    "CREATE INDEX memory_owner ON memory (owner)",
)
_STAGES = {
    "modification": "List what is new or changed in this conversation, as candidates.",
    "update": "Decide for each candidate whether it is added, supersedes what is known, or adds nothing.",
    "mind": "Tell what the user seems to think, feel and want.",
}


class InlineMemory:
    """Three requests while the caller waits, with all that is known in each, and then one transaction.

    Nothing is kept before the last answer is there: who stops in between has lost the conversation.
    """

    def __init__(self, path: str, base_url: str) -> None:
        self._client = openai.AsyncOpenAI(base_url=base_url, api_key=API_KEY, max_retries=0)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        for table in _TABLES:
            self._connection.execute(table)

    async def add(self, user: str, messages: Sequence[dict[str, str]]) -> None:
        """Learn from a conversation, and store it."""
        rows = self._connection.execute("SELECT content FROM memory WHERE owner = ?", (user,)).fetchall()
        given: dict[str, Any] = {"known": [content for (content,) in rows], "messages": messages}
        found = await self._ask("modification", given)
        decided = await self._ask("update", {**given, **found})
        felt = await self._ask("mind", given)
        added = [each for each in decided["decisions"] if each["action"] == "add"]
        entries = [("event", each["text"]) for each in found["candidates"][: len(added)]]
        self._store(user, messages, [*entries, *(("mind", each["text"]) for each in felt["entries"])])

    async def _ask(self, stage: str, given: dict[str, Any]) -> Any:
        form: Any = {"type": "json_schema", "json_schema": {"name": stage, "schema": {"type": "object"}}}
        answer = await self._client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[
                {"role": "system", "content": _STAGES[stage]},
                {"role": "user", "content": json.dumps(given)},
            ],
            response_format=form,
        )
        return json.loads(answer.choices[0].message.content or "{}")

    def _store(
        self, user: str, messages: Sequence[dict[str, str]], entries: Sequence[tuple[str, str]]
    ) -> None:
        made = str(uuid.uuid4())
        said = [(made, place, each["role"], each["content"]) for place, each in enumerate(messages)]
        learned = [(str(uuid.uuid4()), user, kind, text) for kind, text in entries]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", said)
        self._connection.executemany("INSERT INTO memory VALUES (?, ?, ?, ?)", learned)
        self._connection.execute("COMMIT")

    async def aclose(self) -> None:
        """Close the file and the client."""
        self._connection.close()
        await self._client.close()
