"""Threads of LangGraph, their branches and their steps."""

from typing import Annotated, Any

from pydantic import Field

from . import examples
from .base import (
    NO_NUL,
    Cursor,
    NextCursor,
    OwnerId,
    PageQuery,
    PageSize,
    QueryParameters,
    ResponseBody,
    Timestamp,
    with_examples,
)

_LONGEST = 1000  # characters
_THREAD_ID = "trip-to-lisbon"
_CHECKPOINT = "1f0c2d3e-4b5a-6978-8001-9d8c7b6a5f4e"
_THREAD = {
    "thread_id": _THREAD_ID,
    "user_id": examples.USER,
    "checkpoint_count": 6,
    "created_at": examples.TIME,
    "updated_at": examples.LATER,
}
_BRANCH = {"name": "main", "is_current": True, "from_branch": None, "from_step": None, "step_count": 3}
_STEP = {
    "position": 3,
    "checkpoint_id": _CHECKPOINT,
    "parent_id": None,
    "is_readable": True,
    "number": 1,
    "source": "loop",
    "created_at": examples.TIME,
    "nodes": ["answer"],
    "items": [{"type": "message", "role": "assistant", "content": "Take the train."}],
    "removed": 0,
    "changes": [{"channel": "city", "text": "Lisbon"}],
    "interrupts": [],
    "errors": [],
}

ThreadId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST,
        pattern=NO_NUL,
        description="The id of the thread.",
        examples=[_THREAD_ID],
    ),
]


class ThreadListQuery(PageQuery):
    """The page of the list of threads."""

    user_id: OwnerId | None = None


class Thread(ResponseBody):
    """A thread of LangGraph."""

    thread_id: str
    user_id: str | None = Field(description="The `user_id` that a config of the thread named.")
    checkpoint_count: int = Field(description="The number of checkpoints, in all namespaces.")
    created_at: Timestamp
    updated_at: Timestamp


class ThreadPage(ResponseBody):
    """Threads, those that changed last first."""

    model_config = with_examples({"items": [_THREAD], "next_cursor": None})

    items: list[Thread]
    next_cursor: NextCursor


class ThreadQuery(QueryParameters):
    """A thread, and the namespace of a graph inside its graph."""

    thread_id: ThreadId
    namespace: Annotated[
        str,
        Field(max_length=_LONGEST, description="The namespace of a subgraph; empty for the graph itself."),
    ] = ""


class ThreadBranch(ResponseBody):
    """A line of steps of a thread."""

    name: str
    is_current: bool = Field(description="Whether it has the newest step, from which the thread goes on.")
    from_branch: str | None = Field(description="The branch it forks from; null for the first one.")
    from_step: int | None = Field(description="Its first own step, counted from 1.")
    step_count: int = Field(description="The number of steps, with those before the fork.")


class ThreadBranches(ResponseBody):
    """The branches of a thread."""

    model_config = with_examples(
        {
            "thread_id": _THREAD_ID,
            "user_id": examples.USER,
            "namespace": "",
            "namespaces": [""],
            "items": [_BRANCH],
        }
    )

    thread_id: str
    user_id: str | None
    namespace: str
    namespaces: list[str] = Field(
        description="All namespaces of the thread: that of the graph, and subgraphs."
    )
    items: list[ThreadBranch]


class StepQuery(ThreadQuery):
    """The page of the steps of a branch."""

    branch: (
        Annotated[
            str, Field(min_length=1, max_length=100, description="The branch; if absent, the current one.")
        ]
        | None
    ) = None
    cursor: Cursor | None = None
    limit: PageSize | None = None


class StepChange(ResponseBody):
    """A channel that a step changed."""

    channel: str
    text: str = Field(description="The new value, or the items that were added, as a text that may be cut.")


class ThreadStep(ResponseBody):
    """A step of a thread: a checkpoint, and what it added to the one before."""

    position: int = Field(description="Its number on the branch, from 1.")
    checkpoint_id: str
    parent_id: str | None
    is_readable: bool = Field(description="False if the program that wrote the step encrypts it.")
    number: int | None = Field(description="The number that LangGraph gives the step; the first input is -1.")
    source: str | None = Field(description="Why the step exists: `input`, `loop`, `update` or `fork`.")
    created_at: Timestamp | None
    nodes: list[str] = Field(description="The nodes of the graph that ran.")
    items: list[dict[str, Any]] = Field(description="The messages that the step added, as items.")
    removed: int = Field(description="The number of messages that the step removed or replaced.")
    changes: list[StepChange] = Field(description="What else the step changed in the state.")
    interrupts: list[str] = Field(description="What the graph asks a person before it goes on.")
    errors: list[str] = Field(description="Errors of tasks that failed after the step.")


class StepPage(ResponseBody):
    """Steps of a branch, the newest first."""

    model_config = with_examples({"items": [_STEP], "next_cursor": None})

    items: list[ThreadStep]
    next_cursor: NextCursor
