"""Graphiti and Zep: episodes, entity nodes and entity edges as JSON.

The source is one file `{"nodes": […], "edges": […], "episodes": […]}`, or a folder with `nodes.json`,
`edges.json` and `episodes.json`, each a list. The objects have the fields of Graphiti's own classes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ...memory.times import read_time
from ..chats import text_or_none
from ..kinds import ReadOptions
from ..records import Read, Record, Skipped, stable_id
from ..sources import LARGEST_VALUE, Value, decode

_PARTS = ("episodes", "nodes", "edges")
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
}


def open_source(source: str, options: ReadOptions) -> Read:
    """Read exported nodes, edges and episodes."""
    path = Path(source)
    files = (
        [path / f"{name}.json" for name in _PARTS if (path / f"{name}.json").exists()]
        if path.is_dir()
        else [path]
    )
    if not files:
        raise ImportFormatError(f"{path} has none of {', '.join(f'{name}.json' for name in _PARTS)}")
    graph: dict[str, list[Mapping[str, Any]]] = {name: [] for name in _PARTS}
    for file in files:
        yield from _load(file, graph)
    if not any(graph.values()):
        raise ImportFormatError(f"{path} is not an export of Graphiti: it has no nodes, edges or episodes")
    placed: dict[str, tuple[str, str, Any]] = {}
    yield from _episodes(graph["episodes"], options, placed)
    yield from _nodes(graph["nodes"], options)
    yield from _edges(graph["edges"], options, placed)


def _load(path: Path, graph: dict[str, list[Mapping[str, Any]]]) -> Iterator[Skipped]:
    """Add the objects of a file to the graph. It is read as a whole: facts cite episodes anywhere in it."""
    if path.stat().st_size > LARGEST_VALUE:
        raise ImportFormatError(f"{path} is larger than {LARGEST_VALUE:,} bytes: split it by group_id")
    for value in decode(path.name, path.read_bytes().removeprefix(b"\xef\xbb\xbf")):
        if isinstance(value, Skipped):
            if "JSON" in value.reason:
                raise ImportFormatError(f"{path} is not JSON")
            yield value
            continue
        found = value.data if isinstance(value, Value) else None
        if isinstance(found, list) and path.stem in graph:
            found = {path.stem: found}
        if not isinstance(found, Mapping):
            raise ImportFormatError(f"{path} is not an export of Graphiti: expected an object")
        for name in _PARTS:
            for number, each in enumerate(found.get(name) or ()):
                if isinstance(each, Mapping) and text_or_none(each.get("uuid")):
                    graph[name].append(each)
                else:
                    yield Skipped(f"{path.name}, {name} {number}", "it has no uuid")


def _owner(each: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    return {
        "user_id": options.user_id or text_or_none(each.get("user_id")) or text_or_none(each.get("group_id")),
        "agent_id": options.agent_id,
    }


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def _episodes(
    episodes: list[Mapping[str, Any]], options: ReadOptions, placed: dict[str, tuple[str, str, Any]]
) -> Iterator[Record | Skipped]:
    """A conversation for each thread or group, with its episodes in the order of their times."""
    threads: dict[str, list[Mapping[str, Any]]] = {}
    for episode in episodes:
        thread = episode.get("thread_id") or episode.get("session_id") or episode.get("group_id") or ""
        threads.setdefault(str(thread), []).append(episode)
    for thread, some in threads.items():
        conversation_id = stable_id(options.tenant, options.user_id, "graphiti", thread)
        messages = []
        for episode in sorted(
            some, key=lambda each: str(each.get("valid_at") or each.get("created_at") or "")
        ):
            if text_or_none(episode.get("content")) is None:
                yield Skipped(f"episode {episode['uuid']}", "episodes without content", is_lost=False)
                continue
            time = episode.get("valid_at") or episode.get("created_at")
            placed[str(episode["uuid"])] = (conversation_id, str(episode["uuid"]), time)
            messages.append(_message(episode, time))
        if messages:
            data = {
                **_owner(some[0], options),
                "conversation_id": conversation_id,
                "metadata": {"source": "graphiti", "source_id": thread},
                "messages": messages,
            }
            yield Record("conversations", data, f"episodes of {thread or 'the graph'}")


def _message(episode: Mapping[str, Any], time: Any) -> dict[str, Any]:
    role = _ROLES.get(str(episode.get("role_type") or "user").lower(), "user")
    return {
        "message_id": str(episode["uuid"])[:255],
        "role": role,
        "content": episode["content"],
        "created_at": time,
        "name": None,
    }


def _nodes(nodes: list[Mapping[str, Any]], options: ReadOptions) -> Iterator[Record]:
    """What is known of an entity, as an entry."""
    for node in nodes:
        summary, name = text_or_none(node.get("summary")), text_or_none(node.get("name"))
        if summary is None or name is None:
            continue
        data = {
            **_owner(node, options),
            "content_id": stable_id(options.tenant, options.user_id, "graphiti", node["uuid"]),
            "text": summary if name in summary else f"{name}: {summary}",
            "learned_at": node.get("created_at"),
            "tags": [str(label)[:64] for label in node.get("labels") or ()],
            "metadata": {"source": "graphiti", "source_id": node["uuid"], "entity": name[:255]},
        }
        yield Record("entries", _without_none(data), f"node {node['uuid']}")


def _edges(
    edges: list[Mapping[str, Any]], options: ReadOptions, placed: Mapping[str, tuple[str, str, Any]]
) -> Iterator[Record | Skipped]:
    """Each fact with the time in which it was true, the time in which it was known, and its episodes."""
    for edge in edges:
        where = f"edge {edge['uuid']}"
        fact = text_or_none(edge.get("fact"))
        if fact is None:
            yield Skipped(where, "edges without a fact", is_lost=False)
            continue
        cited = [placed[str(each)] for each in edge.get("episodes") or () if str(each) in placed]
        missing = len(edge.get("episodes") or ()) - len(cited)
        if missing:
            yield Skipped(where, f"{missing} episodes that it cites are missing: imported without them")
        valid_to = _day(edge.get("invalid_at"))
        data = {
            **_owner(edge, options),
            "content_id": stable_id(options.tenant, options.user_id, "graphiti", edge["uuid"]),
            "text": fact,
            "type": "event",
            "learned_at": edge.get("created_at"),
            "said_at": edge.get("reference_time") or (cited[-1][2] if cited else None),
            "valid_from": _day(edge.get("valid_at")),
            "valid_to": valid_to,
            "retired_at": edge.get("expired_at") or (edge.get("invalid_at") if valid_to else None),
            "metadata": {"source": "graphiti", "source_id": edge["uuid"], "relation": edge.get("name") or ""},
            "evidence": [{"conversation_id": talk, "message_id": said} for talk, said, _ in cited],
        }
        yield Record("entries", _without_none(data), where)


def _day(given: Any) -> str | None:
    """The day of a time; `None` if there is none, or if it cannot be read."""
    try:
        time = read_time("time", given)
    except (TypeError, ValueError):
        return None
    return None if time is None else f"{time:%Y-%m-%d}"
