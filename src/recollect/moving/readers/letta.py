"""Agent files of Letta (`.af`): blocks, messages and, where they are added, archival passages."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ..chats import text_or_none
from ..kinds import ReadOptions
from ..records import Read, Record, Skipped, stable_id
from ..sources import LARGEST_VALUE, Value, decode

_EVENTS = ("login", "heartbeat", "system_alert")
_REPLY = "send_message"


def open_source(source: str, options: ReadOptions) -> Read:
    """Read an agent file."""
    path = Path(source)
    if path.stat().st_size > LARGEST_VALUE:
        raise ImportFormatError(f"{path} is too large for an agent file: more than {LARGEST_VALUE:,} bytes")
    document: Any = None
    for value in decode(path.name, path.read_bytes().removeprefix(b"\xef\xbb\xbf")):
        if isinstance(value, Value):
            document = value.data
        elif document is None and "JSON" in value.reason:
            raise ImportFormatError(f"{path} is not an agent file: it is not JSON")
        else:
            yield value
    if not isinstance(document, Mapping) or not ("agents" in document or "core_memory" in document):
        raise ImportFormatError(f"{path} is not an agent file of Letta: it has no agents")
    agents = document.get("agents") if "agents" in document else [document]  # the first version had one agent
    if not isinstance(agents, list):
        raise ImportFormatError("agents must be a list")
    blocks = {block.get("id"): block for block in _objects(document.get("blocks"))}
    for number, agent in enumerate(agents):
        where = f"{path.name}, agent {number}"
        if not isinstance(agent, Mapping):
            yield Skipped(where, "it is not an object")
        else:
            yield from _agent(agent, blocks, document, options, where)


def _objects(given: Any) -> list[Mapping[str, Any]]:
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []


def _agent(
    agent: Mapping[str, Any],
    blocks: Mapping[Any, Mapping[str, Any]],
    document: Mapping[str, Any],
    options: ReadOptions,
    where: str,
) -> Read:
    agent_id = options.agent_id or text_or_none(agent.get("name")) or str(agent.get("id") or "letta")
    owner = {"agent_id": agent_id, "user_id": options.user_id}
    own = [blocks[id_] for id_ in agent.get("block_ids") or () if id_ in blocks]
    missing = [id_ for id_ in agent.get("block_ids") or () if id_ not in blocks]
    if missing:
        yield Skipped(where, f"{len(missing)} blocks that it refers to are missing")
    for block in [*own, *_objects(agent.get("memory_blocks")), *_objects(agent.get("core_memory"))]:
        yield from _block(block, owner, agent, document, options, f"{where}, block {block.get('label')}")
    said = list(_messages(_objects(agent.get("messages"))))
    if said:
        source_id = str(agent.get("id") or agent_id)
        data = {
            **owner,
            "conversation_id": stable_id(options.tenant, options.user_id, "letta", agent_id, source_id),
            "metadata": {"source": "letta", "source_id": source_id},
            "messages": said,
        }
        yield Record("conversations", data, where)
    passages = _objects(agent.get("passages")) + _objects(agent.get("archival_memory"))
    for passage in passages or _objects(document.get("passages")):
        yield from _passage(passage, owner, options, where)


def _block(
    block: Mapping[str, Any],
    owner: Mapping[str, Any],
    agent: Mapping[str, Any],
    document: Mapping[str, Any],
    options: ReadOptions,
    where: str,
) -> Read:
    """An entry for each line of a block."""
    label = text_or_none(block.get("label")) or "block"
    time = block.get("updated_at") or block.get("created_at") or document.get("created_at")
    for number, line in enumerate(str(block.get("value") or "").splitlines()):
        text = line.strip().lstrip("-*• ").strip()
        if not text:
            continue
        data = {
            **owner,
            "content_id": stable_id(
                options.tenant, options.user_id, "letta", agent.get("id"), label, number, text
            ),
            "text": text,
            "type": "profile",
            "tags": [label[:64]],
            "metadata": {"source": "letta", "block": label},
            "learned_at": time,
        }
        yield Record("entries", {name: value for name, value in data.items() if value is not None}, where)


def _passage(passage: Mapping[str, Any], owner: Mapping[str, Any], options: ReadOptions, where: str) -> Read:
    text = text_or_none(passage.get("text"))
    if text is None:
        yield Skipped(where, "a passage has no text")
        return
    passage_id = str(passage.get("id") or stable_id(text))
    tags = [str(tag) for tag in passage.get("tags") or ()]
    data = {
        **owner,
        "content_id": stable_id(options.tenant, options.user_id, "letta", "passage", passage_id),
        "text": text,
        "type": "event",
        "tags": [*tags, "archival"],
        "metadata": {"source": "letta", "source_id": passage_id},
        "learned_at": passage.get("created_at"),
    }
    yield Record("entries", {name: value for name, value in data.items() if value is not None}, where)


# --- messages ---


def _messages(given: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in given:
        role, text = str(message.get("role")), _text_of(message.get("content") or message.get("text"))
        if role == "user":
            text = _said_by_user(text)
        elif role == "assistant":
            text = _replied(message.get("tool_calls")) or text
        elif role in ("tool", "function"):
            role, text = "tool", None  # the result of a call, which the next answer takes up
        else:
            continue
        if text_or_none(text):
            yield {
                "message_id": str(message["id"])[:255] if message.get("id") else None,
                "role": role,
                "content": text,
                "created_at": message.get("created_at"),
                "name": None,
            }


def _text_of(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _objects(content) if part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _said_by_user(text: str | None) -> str | None:
    """The words of a user. Letta packs them in JSON with a type; events of the system are left out."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        packed = json.loads(text)
    except ValueError:
        return text
    if not isinstance(packed, dict) or "type" not in packed:
        return text
    return None if packed["type"] in _EVENTS else text_or_none(packed.get("message"))


def _replied(calls: Any) -> str | None:
    """What an agent said with the tool that sends messages."""
    said = []
    for call in _objects(calls):
        function = call.get("function") if isinstance(call.get("function"), Mapping) else {}
        if function and function.get("name") == _REPLY:
            try:
                arguments = json.loads(str(function.get("arguments")))
            except ValueError:
                continue
            if isinstance(arguments, dict) and text_or_none(arguments.get("message")):
                said.append(arguments["message"])
    return "\n".join(said) or None
