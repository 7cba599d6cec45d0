"""Transcripts of agents whose own format is not documented: the daemon notes prompts and answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..transcript import About, Said, Step, own_text


class NotedReader:
    """Reads what the daemon noted. An event that was delivered twice counts once."""

    def __init__(self, program: str) -> None:
        self.about = About(program)
        self._seen: set[str] = set()

    def read(self, record: Mapping[str, Any]) -> Iterator[Step]:
        """The step of an event."""
        self.about.note(session_id=record["session"], cwd=record.get("cwd"))
        role, name = record["role"], str(record["id"])
        text = own_text(record["text"]) if role == "user" else str(record["text"]).strip()
        if name in self._seen or not text:
            return
        self._seen.add(name)
        part = {"type": "input_text" if role == "user" else "output_text", "text": text}
        item = {"type": "message", "role": role, "content": [part]}
        yield Step(record.get("time"), (item,), Said(role, text, name))
