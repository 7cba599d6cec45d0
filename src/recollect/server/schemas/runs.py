"""Runs: how far the learning has come, and what went wrong."""

from typing import Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import Key, NextCursor, OwnerId, PageQuery, QueryParameters, ResponseBody, Timestamp, with_examples

RunStatus: TypeAlias = Literal["pending", "running", "done", "failed"]

_RUN: dict[str, Any] = {
    "run_id": examples.RUN_ID,
    "memory_id": examples.MEMORY_ID,
    "conversation_id": examples.CONVERSATION_ID,
    "first_index": 0,
    "last_index": 1,
    "status": "done",
    "attempts": 1,
    "created_at": examples.TIME,
    "started_at": examples.TIME,
    "finished_at": examples.LATER,
    "error": None,
    "model": "offline",
    "stages": [
        {
            "stage": "modification",
            "model": "offline",
            "finished_at": examples.LATER,
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "left_out": 0,
        }
    ],
    "failures": [],
    "left_out": 0,
}


class StagePayload(ResponseBody):
    """A stage that is finished."""

    stage: str
    model: str
    finished_at: Timestamp
    prompt_tokens: int
    completion_tokens: int
    left_out: int = Field(description="Sentences or messages that it did not read whole.")


class FailurePayload(ResponseBody):
    """An attempt that came to nothing, and what the model said."""

    attempt: int
    stage: str
    failed_at: Timestamp
    error: str
    raw_response: str
    prompt_tokens: int
    completion_tokens: int


class RunPayload(ResponseBody):
    """What is learned, or to be learned, from some messages of a conversation."""

    model_config = with_examples(_RUN)

    run_id: str
    memory_id: str
    conversation_id: str
    first_index: int
    last_index: int
    status: RunStatus
    attempts: int
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    error: str | None
    model: str | None
    stages: list[StagePayload]
    failures: list[FailurePayload]
    left_out: int = Field(description="Sentences or messages that were not read whole; 0 if all were.")


class RunQuery(PageQuery):
    """Which runs are listed."""

    status: RunStatus | None = None
    conversation_id: Key | None = None
    order: Literal["id", "newest"] = Field("id", description="By their ids, or the newest first.")


class RunPage(ResponseBody):
    """Runs, in the order of their ids, or the newest first."""

    model_config = with_examples({"items": [_RUN], "next_cursor": None})

    items: list[RunPayload]
    next_cursor: NextCursor


class RunOfPage(PageQuery):
    """Which runs of a conversation are listed."""


class CoverageQuery(QueryParameters):
    """Whose conversations are counted."""

    agent_id: OwnerId | None = None
    user_id: OwnerId | None = None


class CoverageResponse(ResponseBody):
    """How many conversations are remembered, how many are yet to be, and how many could not be."""

    model_config = with_examples({"remembered": 1, "pending": 0, "failed": 0, "partial": 0, "share": 1.0})

    remembered: int
    pending: int
    failed: int
    partial: int = Field(description="Learned from, but not read whole: a message was too long.")
    share: float = Field(description="The share that is remembered; 1 if there are no conversations.")
