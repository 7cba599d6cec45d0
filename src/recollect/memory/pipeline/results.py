"""Builds `pipeline_result`: the result of the runs of a conversation, as its API representation has it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...sql.columns import StoredTime, time_from_column
from ..database.runs import StageRecord
from ..times import format_time
from .stages import Stage, Usage

DROPPED = "dropped"
"""The key in the data of a stage for the number of dropped candidates, by reason."""
MASKED = "masked"
"""The key in the data of a stage for the number of masked secrets, by kind."""

_TOO_MANY = ("sentences_left_out", "messages_left_out", "messages_shortened")
_NOT_READ = {
    "messages_in_other_languages": "{} messages are in a language that the rules do not cover",
    "messages_only_code": "{} messages have nothing but code or pasted text",
}
_LEFT_OUT = (*_TOO_MANY, *_NOT_READ)
_DROPPED_PREFIX = "dropped_"  # of the counts of an extractor
_LONGEST_TEXT = 20_000  # characters: a conversation may go on for years, with many runs


def pipeline_result(stages: Mapping[Stage, StageRecord], messages: int) -> dict[str, Any]:
    """The result of a run: its three stages, over `messages` messages.

    The format has no place for the tokens of the first stage. They are in the `llm_usage` of the second: one
    call may answer for both, or for all three. So the tokens of a run are the sum of both `llm_usage`.
    """
    first, update, mind = stages["modification"], stages["update"], stages["mind"]
    updated = bool(update.result["profile_updated"])
    return {
        "modification_result": first.result["text"],
        "update_result": {
            "profile_updated": updated,
            "raw_llm_response": update.raw_response,
            "metadata": _metadata(update, "llm_update", "updated_at", first),
        },
        "mind_result": {
            "insights": mind.result["insights"],
            "confidence_score": mind.result["confidence_score"],
            "raw_llm_response": mind.raw_response,
            "metadata": _metadata(mind, "llm_theory_of_mind", "analyzed_at"),
        },
        "pipeline_metadata": {
            "execution_time": _format(mind.finished_at),
            "conversation_length": messages,
            "llm_model": mind.model,
            "profile_updated": updated,
        },
    }


def mind_run_result(mind: StageRecord, messages: int) -> dict[str, Any]:
    """The result of a run that only infers."""
    nothing = replace(mind, result={"text": "", "profile_updated": False}, raw_response="", prompt_tokens=0)
    nothing = replace(nothing, completion_tokens=0)
    return pipeline_result({"modification": nothing, "update": nothing, "mind": mind}, messages)


def merge_mind(before: dict[str, Any] | None, result: dict[str, Any], length: int) -> dict[str, Any]:  # noqa: ARG001
    """The result of a conversation after a run that infers: what it infers takes the place of its mind."""
    return result if before is None else {**before, "mind_result": result["mind_result"]}


def describe_left_out(stages: Iterable[StageRecord]) -> str | None:
    """A sentence on what the stages of a run did not read; `None` if they read everything."""
    found = [_data_of(stage) for stage in stages]
    many = max((_sum_of(data, _TOO_MANY) for data in found), default=0)
    reasons = [f"{many} sentences or messages were not read whole: there were too many"] if many else []
    for name, reason in _NOT_READ.items():
        count = max((_sum_of(data, (name,)) for data in found), default=0)
        reasons += [reason.format(count)] if count else []
    return "; ".join(reasons) or None


def count_left_out(stage: StageRecord) -> int:
    """The number of sentences or messages that a stage did not read in full."""
    return _sum_of(_data_of(stage), _LEFT_OUT)


def _sum_of(data: Mapping[str, Any], names: Iterable[str]) -> int:
    counts = [data.get(name, 0) for name in names]
    return sum(count for count in counts if isinstance(count, int))


def count_dropped(stage: StageRecord) -> dict[str, int]:
    """How many candidates a stage dropped, by the reason. An extractor counts some, and the guard others."""
    data = _data_of(stage)
    counted = {
        name.removeprefix(_DROPPED_PREFIX).replace("_", " "): count
        for name, count in data.items()
        if name.startswith(_DROPPED_PREFIX)
    }
    # Both may drop candidates for the same reason.
    return dict(Counter(_counts(counted)) + Counter(_counts(data.get(DROPPED))))


def count_masked(stage: StageRecord) -> dict[str, int]:
    """How many secrets were masked in the candidates of a stage, by their kind."""
    return _counts(_data_of(stage).get(MASKED))


def _data_of(stage: StageRecord) -> Mapping[str, Any]:
    data = stage.result.get("data", {}) if isinstance(stage.result, dict) else {}
    return data if isinstance(data, dict) else {}


def _counts(value: object) -> dict[str, int]:
    """The counts in a stored value. Anything else is left out."""
    items = value.items() if isinstance(value, dict) else ()
    return {name: count for name, count in items if type(count) is int and count > 0}


def merge_results(before: dict[str, Any] | None, result: dict[str, Any], length: int) -> dict[str, Any]:
    """The result of a conversation after a further run: the newest one, with the modifications of all."""
    if before is None:
        return _with(result, result["modification_result"], _is_updated(result), length)
    texts = (before.get("modification_result"), result["modification_result"])
    text = "\n".join(text for text in texts if text)[-_LONGEST_TEXT:]
    return _with(result, text, _is_updated(before) or _is_updated(result), length)


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


def _metadata(stage: StageRecord, name: str, time: str, *before: StageRecord) -> dict[str, Any]:
    calls = (*before, stage)
    usage = Usage(
        sum(call.prompt_tokens for call in calls),
        sum(call.completion_tokens for call in calls),
    )
    return {"stage": name, time: _format(stage.finished_at), "llm_usage": usage.to_dict()}


def _format(column: StoredTime) -> str:
    return format_time(time_from_column(column))
