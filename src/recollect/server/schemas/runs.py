"""Runs: the progress of learning, and its failures."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import (
    MAX_WAIT,
    NextCursor,
    OwnerId,
    PageQuery,
    QueryParameters,
    ResponseBody,
    Timestamp,
    with_examples,
)

RunStatus: TypeAlias = Literal["pending", "running", "done", "failed"]
RunKind: TypeAlias = Literal["learning", "mind"]

_RUN: dict[str, Any] = {
    "run_id": examples.RUN_ID,
    "memory_id": examples.MEMORY_ID,
    "conversation_id": examples.CONVERSATION_ID,
    "agent_id": "assistant",
    "user_id": "ada",
    "title": "I live in Lisbon.",
    "learned": 1,
    "kind": "learning",
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
            "dropped": {"steers the agent": 1},
            "masked": {"API key": 1},
        }
    ],
    "failures": [],
    "left_out": 0,
    "dropped": {"steers the agent": 1},
    "masked": {"API key": 1},
}


class StagePayload(ResponseBody):
    """A finished stage."""

    stage: str
    model: str
    finished_at: Timestamp
    prompt_tokens: int
    completion_tokens: int
    left_out: int = Field(description="The number of sentences or messages not read completely.")
    dropped: dict[str, int] = Field(description="How many candidates became no entries, by the reason.")
    masked: dict[str, int] = Field(description="How many secrets were masked in candidates, by their kind.")


class FailurePayload(ResponseBody):
    """A failed attempt, with the response of the model."""

    attempt: int
    stage: str
    failed_at: Timestamp
    error: str
    raw_response: str
    prompt_tokens: int
    completion_tokens: int


class RunPayload(ResponseBody):
    """One pass of the learning pipeline over some messages of a conversation."""

    model_config = with_examples(_RUN)

    run_id: str
    memory_id: str
    conversation_id: str
    agent_id: str
    user_id: str
    title: str = Field(description="The beginning of the first message that it reads.")
    learned: int = Field(description="The number of entries that it has added.")
    kind: RunKind = Field(description="Learning from messages, or inferring about the mind from entries.")
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
    left_out: int = Field(description="The number of sentences or messages not read completely.")
    dropped: dict[str, int] = Field(description="How many candidates became no entries, by the reason.")
    masked: dict[str, int] = Field(description="How many secrets were masked in candidates, by their kind.")


class RunOrder(PageQuery):
    """The order of the list of runs."""

    order: Literal["id", "newest"] = Field("id", description="By id, or newest first.")


class RunPage(ResponseBody):
    """Runs, ordered by id or newest first."""

    model_config = with_examples({"items": [_RUN], "next_cursor": None})

    items: list[RunPayload]
    next_cursor: NextCursor


class RunOfPage(PageQuery):
    """The page of the runs of a conversation."""


class CoverageQuery(QueryParameters):
    """The agent or user whose conversations are counted."""

    agent_id: OwnerId | None = None
    user_id: OwnerId | None = None
    wait: (
        Annotated[
            float,
            Field(
                ge=0,
                le=MAX_WAIT,
                description="Seconds to wait until everything recorded for the user is learned and has"
                " vectors. Needs a `user_id`.",
            ),
        ]
        | None
    ) = None


class CoverageResponse(ResponseBody):
    """The number of conversations by learning state."""

    model_config = with_examples(
        {"remembered": 1, "pending": 0, "failed": 0, "partial": 0, "share": 1.0, "behind_seconds": 0.0}
    )

    remembered: int
    pending: int
    failed: int
    partial: int = Field(description="Learned, but a message was too long to be read completely.")
    share: float = Field(description="The remembered share; 1 if there are no conversations.")
    behind_seconds: float = Field(
        description="How long the tenant's oldest due work has waited; 0 if nothing is pending."
    )
    learned: bool | None = Field(
        default=None, description="Only with `wait`: whether everything recorded for the user is learned."
    )
