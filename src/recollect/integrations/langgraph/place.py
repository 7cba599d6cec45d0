"""Where a checkpoint is: the thread, the namespace and the id that a config of LangGraph names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from ...errors import InvalidTypeError, InvalidValueError
from ...sql.columns import check_id
from ...text_checks import check_text

_LONGEST = 1000  # characters of an id or a namespace: both are in an index, whose rows have a limit


class CheckpointPlace(NamedTuple):
    """A thread and a namespace, and the id of a checkpoint if one is named."""

    thread_id: str
    namespace: str = ""
    checkpoint_id: str | None = None

    def config(self, checkpoint_id: str | None = None) -> RunnableConfig:
        """The config that names this place, or another checkpoint of the same thread."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id or self.checkpoint_id,
            }
        }


def place_of(config: RunnableConfig) -> CheckpointPlace:
    """The place that a config names. Raises `InvalidValueError` if it names no thread."""
    named = configurable_of(config)
    if named.get("thread_id") is None:
        raise InvalidValueError("config['configurable'] must have a 'thread_id'")
    return CheckpointPlace(
        check_thread_id(named["thread_id"]),
        check_namespace(named.get("checkpoint_ns") or ""),
        checkpoint_id_of(config),
    )


def configurable_of(config: RunnableConfig) -> Mapping[str, Any]:
    """The part of a config that names a place."""
    named = config.get("configurable")
    if not isinstance(named, Mapping):
        raise InvalidTypeError("config must have a mapping 'configurable'")
    return named


def checkpoint_id_of(config: RunnableConfig) -> str | None:
    """The id of the checkpoint that a config names, if it names one."""
    found = configurable_of(config).get("checkpoint_id")
    return _short("checkpoint_id", check_id("checkpoint_id", found)) if found else None


def check_thread_id(thread_id: object) -> str:
    """The id of a thread as text."""
    given = str(thread_id) if isinstance(thread_id, int) else thread_id
    return _short("thread_id", check_id("thread_id", given))


def check_namespace(namespace: object) -> str:
    """A namespace. Any text is one; LangGraph separates nested graphs by `|`."""
    return _short("checkpoint_ns", check_text("checkpoint_ns", namespace))


def _short(name: str, text: str) -> str:
    if len(text) > _LONGEST:
        raise InvalidValueError(f"{name} must have at most {_LONGEST} characters, not {len(text)}")
    return text


def user_of(config: RunnableConfig) -> str | None:
    """The user whom a config names as `user_id`, in `configurable` or `metadata`."""
    for part in (config.get("configurable"), config.get("metadata")):
        found = (part or {}).get("user_id")
        if isinstance(found, str) and found:
            return _short("user_id", check_id("user_id", found))
    return None


def key_of_version(version: str | int | float) -> str:
    """A version of a channel as a key."""
    return version if isinstance(version, str) else f"#{version!r}"
