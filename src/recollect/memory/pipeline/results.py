"""`pipeline_result`: what a run came to, as conversations tell it."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...sql.columns import StoredTime, time_from_column
from ..database.runs import StageRecord
from ..times import tell_time
from .stages import Stage, Usage

_LEFT_OUT = ("sentences_left_out", "messages_left_out", "messages_shortened")
_LONGEST_TEXT = 20_000  # characters: a conversation may go on for years


def pipeline_result(kept: Mapping[Stage, StageRecord], messages: int) -> dict[str, Any]:
    """The result of the three stages over so many messages."""
    update, mind = kept["update"], kept["mind"]
    updated = bool(update.result["profile_updated"])
    return {
        "modification_result": kept["modification"].result["text"],
        "update_result": {
            "profile_updated": updated,
            "raw_llm_response": update.raw_response,
            "metadata": _metadata(update, "llm_update", "updated_at"),
        },
        "mind_result": {
            "insights": mind.result["insights"],
            "confidence_score": mind.result["confidence_score"],
            "raw_llm_response": mind.raw_response,
            "metadata": _metadata(mind, "llm_theory_of_mind", "analyzed_at"),
        },
        "pipeline_metadata": {
            "execution_time": _told(mind.finished_at),
            "conversation_length": messages,
            "llm_model": mind.model,
            "profile_updated": updated,
        },
    }


def describe_left_out(kept: Iterable[StageRecord]) -> str | None:
    """What the stages of a run did not read, in words; `None` if they read everything."""
    count = max((count_left_out(stage) for stage in kept), default=0)
    if not count:
        return None
    return f"{count} sentences or messages were not read whole: there were too many"


def count_left_out(stage: StageRecord) -> int:
    """How many sentences or messages a stage did not read whole."""
    data = stage.result.get("data", {}) if isinstance(stage.result, dict) else {}
    counts = [data.get(name, 0) for name in _LEFT_OUT]
    return sum(count for count in counts if isinstance(count, int))


def merged(before: dict[str, Any] | None, result: dict[str, Any], length: int) -> dict[str, Any]:
    """What a conversation tells after a further run: its newest result, and what was new in all of them."""
    if before is None:
        return _with(result, result["modification_result"], _is_updated(result), length)
    texts = (before.get("modification_result"), result["modification_result"])
    told = "\n".join(text for text in texts if text)[-_LONGEST_TEXT:]
    return _with(result, told, _is_updated(before) or _is_updated(result), length)


def _is_updated(result: Mapping[str, Any]) -> bool:
    return bool(result.get("pipeline_metadata", {}).get("profile_updated"))


def _with(result: dict[str, Any], text: str, is_updated: bool, length: int) -> dict[str, Any]:
    metadata = {
        **result["pipeline_metadata"],
        "conversation_length": length,
        "profile_updated": is_updated,
    }
    update = {**result["update_result"], "profile_updated": is_updated}
    return {
        **result,
        "modification_result": text,
        "update_result": update,
        "pipeline_metadata": metadata,
    }


def _metadata(stage: StageRecord, name: str, time: str) -> dict[str, Any]:
    usage = Usage(stage.prompt_tokens, stage.completion_tokens)
    return {"stage": name, time: _told(stage.finished_at), "llm_usage": usage.to_dict()}


def _told(column: StoredTime) -> str:
    return tell_time(time_from_column(column))
