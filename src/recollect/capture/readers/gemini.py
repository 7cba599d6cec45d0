"""Transcripts of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-….jsonl`.

A record may come again with more in it, such as the results of its tools. What was new the first time counts.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..transcript import About, Run, Said, Step, own_text, texts_in, usage_row

_SHELL = "run_shell_command"
_WRITERS = ("write_file", "replace", "edit")


class GeminiReader:
    """Reads a transcript of Gemini CLI. Its `cwd` is that of `.project_root`, which the caller knows."""

    def __init__(self, cwd: str | None = None) -> None:
        self.about = About("gemini", cwd=cwd)
        self._seen: set[str] = set()

    def read(self, record: Mapping[str, Any]) -> Iterator[Step]:
        """The steps of a record."""
        self.about.note(session_id=record.get("sessionId"))
        changed = record.get("$set")
        if isinstance(changed, Mapping):
            for message in changed.get("messages") or ():
                yield from self._message(message)
        elif "id" in record:
            yield from self._message(record)
        elif "sessionId" not in record and "$rewindTo" not in record:
            self.about.note_unknown(record.get("type"))

    def _message(self, record: Mapping[str, Any]) -> Iterator[Step]:
        kind, time, name = record.get("type"), record.get("timestamp"), str(record["id"])
        if kind not in ("user", "gemini"):
            if kind not in ("info", "error", "warning"):
                self.about.note_unknown(kind)
            return
        self.about.note_model(record.get("model"))
        role, shape = ("user", "input_text") if kind == "user" else ("assistant", "output_text")
        texts = texts_in(record.get("content"))
        text = "\n\n".join(filter(None, map(own_text, texts))) if kind == "user" else "\n".join(texts).strip()
        if text and self._is_new(name):
            item = {"type": "message", "role": role, "content": [{"type": shape, "text": text}]}
            yield Step(time, (item,), Said(role, text, name))  # type: ignore[arg-type]
        used = record.get("tokens")
        if isinstance(used, Mapping) and self._is_new(f"{name} tokens"):
            yield Step(
                time, usage=usage_row(input_tokens=used.get("input"), output_tokens=used.get("output"))
            )
        for call in record.get("toolCalls") or ():
            if isinstance(call, Mapping) and self._is_new(f"call {call.get('id')}"):
                yield _call(time, call)

    def _is_new(self, name: str) -> bool:
        is_new = name not in self._seen
        self._seen.add(name)
        return is_new


def _call(time: Any, call: Mapping[str, Any]) -> Step:
    call_id, name, given = str(call.get("id")), str(call.get("name")), call.get("args")
    given = given if isinstance(given, Mapping) else {}
    output = call.get("resultDisplay")
    shown = output if isinstance(output, str) else json.dumps(output)
    run = None
    if name == _SHELL and isinstance(given.get("command"), str):
        succeeded = call.get("status") == "success" and "Exit Code:" not in json.dumps(call.get("result"))
        run = Run(given["command"], succeeded, str(given.get("description") or ""))
    called = {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(dict(given))}
    touched = (str(given["file_path"]),) if name in _WRITERS and given.get("file_path") else ()
    result = {"type": "function_call_output", "call_id": call_id, "output": shown}
    return Step(time, (called, result), run=run, touched=touched)
