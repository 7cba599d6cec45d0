"""What every adapter stands on: records in sessions, and what was said in a memory."""

from collections.abc import Sequence
from typing import Any

from recollect.integrations.framework import Framework, FrameworkSessions
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop


def items_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A record with texts becomes a message for each; any other one says nothing."""
    return [{"type": "message", "role": "user", "content": text} for text in record.get("texts", [])]


PLAIN = Framework("plain", items_of)


class Conversation:
    """A conversation of a framework that has no interface of its own."""

    def __init__(self, sessions: FrameworkSessions, name: str) -> None:
        self.sessions = sessions
        self.log = sessions.open(name)

    async def add(self, records: Sequence[Any]) -> None:
        await self.log.append(records)

    async def records(self) -> list[Any]:
        return await self.log.load()

    async def aclose(self) -> None:
        await self.log.aclose()
        await self.sessions.aclose()


class TestFoundation(AdapterContract):
    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        return Conversation(
            FrameworkSessions(PLAIN, url, agent_id=self.agent_id, create_tables=True, **options), name
        )

    def record(self, text: str) -> Any:
        return {"texts": [text]}

    def text_of(self, record: Any) -> str:
        return str(record["texts"][0])

    def odd_records(self) -> list[Any]:
        return [
            *super().odd_records(),
            {"texts": ["one", "two"], "more": {"of": [None, 1.5, {}]}},
            {"texts": ["lone \ud83d half", "nul \0"]},
            {},
        ]

    @in_event_loop
    async def test_a_killed_process_loses_nothing(self, adapter_url: str) -> None:
        await self._kill(adapter_url, kills=1)
