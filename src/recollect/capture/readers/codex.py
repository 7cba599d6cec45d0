"""Transcripts of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-….jsonl`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..transcript import About, Run, Said, Step, own_text, texts_in, usage_row

# What the program notes for itself, or repeats from the items.
_NOTES = frozenset(
    {"world_state", "token_usage_record", "compacted", "ghost_snapshot", "inter_agent_message"}
)
_SHELLS = ("shell", "exec_command", "local_shell", "shell_command", "container.exec")
_EXIT = re.compile(r"(?:exited with code|exit[ _]code\W{1,3})\s*(-?\d+)", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class CodexReader:
    """Reads a transcript of Codex. What it added to the words of the user is left out."""

    def __init__(self) -> None:
        self.about = About("codex")
        self._number = 0
        self._running: dict[str, str] = {}

    def read(self, record: Mapping[str, Any]) -> Iterator[Step]:
        """The steps of a record."""
        self._number += 1
        kind, payload = record.get("type"), record.get("payload")
        if kind in _NOTES:
            return
        if not isinstance(payload, Mapping):
            raise ValueError("its payload is missing")
        time = record.get("timestamp")
        if kind == "session_meta":
            self._note(payload)
        elif kind == "turn_context":
            self.about.note(cwd=payload.get("cwd"))
            self.about.note_model(payload.get("model"))
        elif kind == "event_msg":
            if usage := _usage(payload):
                yield Step(time, usage=usage)
        elif kind == "response_item":
            yield from self._item(time, payload)
        else:
            self.about.note_unknown(kind)

    def _note(self, payload: Mapping[str, Any]) -> None:
        git, source = payload.get("git"), payload.get("source")
        git = git if isinstance(git, Mapping) else {}
        self.about.note(
            session_id=payload.get("id"),
            cwd=payload.get("cwd"),
            version=payload.get("cli_version"),
            branch=git.get("branch"),
            remote=git.get("repository_url"),
        )
        if isinstance(source, Mapping) and "subagent" in source:
            self.about.note(parent=payload.get("parent_thread_id") or payload.get("session_id") or "unknown")

    def _item(self, time: Any, payload: Mapping[str, Any]) -> Iterator[Step]:
        kind = payload.get("type")
        if kind == "message":
            yield from self._message(time, payload)
        elif kind in _CALLS:
            yield self._call(time, payload)
        elif kind in _OUTPUTS:
            call_id, output = str(payload.get("call_id")), _text_of(payload.get("output"))
            item = {"type": "function_call_output", "call_id": call_id, "output": output}
            yield Step(time, (item,), run=self._ended(call_id, output))
        elif kind == "reasoning":
            texts = list(texts_in(payload.get("summary")))
            summary = [{"type": "summary_text", "text": text} for text in texts]
            if summary:
                yield Step(time, ({"type": "reasoning", "summary": summary},))
        elif kind not in ("web_search_call", "ghost_snapshot", "other", "agent_message"):
            self.about.note_unknown(kind)

    def _message(self, time: Any, payload: Mapping[str, Any]) -> Iterator[Step]:
        role, texts = payload.get("role"), texts_in(payload.get("content"))
        if role not in ("user", "assistant"):
            return
        text = (
            "\n\n".join(filter(None, map(own_text, texts))) if role == "user" else "\n\n".join(texts).strip()
        )
        if text:
            part = {"type": "input_text" if role == "user" else "output_text", "text": text}
            said = Said(role, text, str(payload.get("id") or f"m{self._number}"))
            yield Step(time, ({"type": "message", "role": role, "content": [part]},), said)

    def _call(self, time: Any, payload: Mapping[str, Any]) -> Step:
        name = str(payload.get("name") or "local_shell")
        given = payload.get("arguments", payload.get("input", payload.get("action")))
        arguments = given if isinstance(given, str) else json.dumps(given)
        call_id = str(payload.get("call_id") or payload.get("id"))
        if name in _SHELLS and (command := _command(arguments)):
            self._running[call_id] = command
        item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
        return Step(time, (item,), touched=tuple(_PATCHED.findall(arguments.replace("\\n", "\n"))))

    def _ended(self, call_id: str, output: str) -> Run | None:
        command, code = self._running.pop(call_id, None), _EXIT.search(output[:2000])
        return Run(command, code[1] == "0") if command and code else None


def _usage(payload: Mapping[str, Any]) -> dict[str, int] | None:
    info = payload.get("info")
    used = info.get("last_token_usage") if isinstance(info, Mapping) else None
    if payload.get("type") != "token_count" or not isinstance(used, Mapping):
        return None
    return usage_row(input_tokens=used.get("input_tokens"), output_tokens=used.get("output_tokens"))


def _text_of(output: Any) -> str:
    """The output of a tool: a text, an object with a text, or a list of content parts."""
    if isinstance(output, Mapping) and isinstance(output.get("content"), str):
        return str(output["content"])
    if isinstance(output, list):
        return "\n".join(texts_in(output))
    return output if isinstance(output, str) else json.dumps(output)


def _command(arguments: str) -> str | None:
    try:
        given = json.loads(arguments)
    except ValueError:
        return None
    found = (given.get("cmd") or given.get("command")) if isinstance(given, dict) else None
    if isinstance(found, list) and found:
        return str(found[-1])
    return found if isinstance(found, str) else None
