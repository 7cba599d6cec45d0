"""Transcripts of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`, and those of its subagents."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...integrations.claude_agent_sdk.entries import items_in
from ..transcript import About, Run, Said, Step, own_text, texts_in, usage_row

# What the program notes for itself. It holds nothing that was said or done.
_NOTES = frozenset(
    {"attachment", "queue-operation", "last-prompt", "summary", "system", "file-history-snapshot", "progress"}
    | {
        "custom-title",
        "ai-title",
        "agent-name",
        "pr-link",
        "tag",
        "mode",
        "permission-mode",
        "worktree-state",
    }
    | {"file-history-delta", "content-replacement", "agent-setting", "task-summary", "started", "result"}
)
_UNSAID = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
_WRITERS = ("Edit", "MultiEdit", "Write", "NotebookEdit")


class ClaudeCodeReader:
    """Reads a transcript of Claude Code. One with an `agentId` in a file of its own is that of a subagent."""

    def __init__(self, *, is_subagent: bool = False) -> None:
        self.about = About("claude-code")
        self._is_subagent = is_subagent
        self._counted: str | None = None  # the message whose tokens were counted last
        self._running: dict[str, tuple[str, str]] = {}

    def read(self, record: Mapping[str, Any]) -> Iterator[Step]:
        """The steps of a record."""
        self._note(record)
        kind, message = record.get("type"), record.get("message")
        if kind not in ("user", "assistant"):
            if kind not in _NOTES:
                self.about.note_unknown(kind)
            return
        if not isinstance(message, Mapping):
            raise ValueError("its message is missing")
        if any(record.get(name) for name in _UNSAID):
            return
        is_side = bool(record.get("isSidechain")) and not self._is_subagent
        step = self._user if kind == "user" else self._assistant
        yield step(record, _blocks(message.get("content")), is_side)

    def _note(self, record: Mapping[str, Any]) -> None:
        session, agent = record.get("sessionId"), record.get("agentId")
        if self._is_subagent:
            self.about.note(parent=session, session_id=f"{session}/{agent}" if agent else None)
        else:
            self.about.note(session_id=session)
        self.about.note(cwd=record.get("cwd"), branch=record.get("gitBranch"), version=record.get("version"))

    def _user(self, record: Mapping[str, Any], blocks: list[dict[str, Any]], is_side: bool) -> Step:
        typed = [
            {**block, "text": text} if block.get("type") == "text" else block
            for block in blocks
            if block.get("type") != "text" or (text := own_text(str(block.get("text"))))
        ]
        text = "\n\n".join(texts_in(typed))
        said = Said("user", text, str(record["uuid"])) if text else None
        run = next((run for block in blocks if (run := self._ended(block))), None)
        return Step(record.get("timestamp"), tuple(items_in("user", typed)), said, run=run, is_side=is_side)

    def _assistant(self, record: Mapping[str, Any], blocks: list[dict[str, Any]], is_side: bool) -> Step:
        message = record["message"]
        self.about.note_model(message.get("model"))
        text = "\n\n".join(texts_in(blocks)).strip()
        said = Said("assistant", text, str(record["uuid"])) if text else None
        touched, plan = self._called(blocks)
        return Step(
            record.get("timestamp"),
            tuple(items_in("assistant", blocks)),
            said,
            self._usage(message),
            touched=touched,
            plan=plan,
            is_side=is_side,
        )

    def _usage(self, message: Mapping[str, Any]) -> dict[str, int] | None:
        """The tokens of a call. The records of one answer repeat them."""
        usage, name = message.get("usage"), message.get("id")
        if not isinstance(usage, Mapping) or (name is not None and name == self._counted):
            return None
        self._counted = name
        return usage_row(input_tokens=usage.get("input_tokens"), output_tokens=usage.get("output_tokens"))

    def _called(self, blocks: list[dict[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that calls write, and the open points of a new list of tasks."""
        touched: list[str] = []
        plan: list[str] = []
        for block in blocks:
            given = block.get("input")
            if block.get("type") != "tool_use" or not isinstance(given, Mapping):
                continue
            if block.get("name") == "Bash" and isinstance(given.get("command"), str):
                self._running[str(block.get("id"))] = (given["command"], str(given.get("description") or ""))
            elif block.get("name") in _WRITERS:
                touched.append(str(given.get("file_path") or given.get("notebook_path") or ""))
            elif block.get("name") == "TodoWrite":
                plan += _open_points(given.get("todos"))
        return tuple(filter(None, touched)), tuple(plan)

    def _ended(self, block: Mapping[str, Any]) -> Run | None:
        started = self._running.pop(str(block.get("tool_use_id")), None)
        if block.get("type") != "tool_result" or started is None:
            return None
        return Run(started[0], not block.get("is_error"), started[1])


def _blocks(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message. An image is replaced by a word, in results of tools, too."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError(f"its content must be a text or a list, not {type(content).__name__}")
    return [_without_data(block) for block in content if isinstance(block, dict)]


def _without_data(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") in ("image", "document"):
        return {"type": "text", "text": f"[{block['type']}]"}
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        parts = [_without_data(part) if isinstance(part, dict) else part for part in block["content"]]
        return {**block, "content": "\n".join(texts_in(parts))}
    return block


def _open_points(todos: Any) -> Iterable[str]:
    for each in todos if isinstance(todos, list) else ():
        if isinstance(each, Mapping) and each.get("status") != "completed" and each.get("content"):
            yield str(each["content"])
