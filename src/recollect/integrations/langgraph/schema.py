"""The tables of checkpoints.

A value of a channel is stored once for each version. A list is not stored in its row: its items are in the
log of the channel, `langgraph_items`, where each is stored once, and the row has their positions as ranges. A
list that grows adds items to the log and changes the end of one range. Rows of the log never change. They are
deleted once no checkpoint needs them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...sql.description import Column, PartialIndex, Table
from ...sql.schema import Schema

_THREAD_ROW = "langgraph_threads.id"

THREADS = Table(
    "langgraph_threads",
    (
        Column("id", "autoincrement"),
        Column("thread_id", "identifier"),
        Column("checkpoint_ns", "identifier"),
        Column("user_id", required=False),
        Column("generation", "integer"),  # counts removals: positions that were read before may be gone
        Column("created_at", "time"),
        Column("updated_at", "time"),
    ),
    key=("id",),
    unique=(("thread_id", "checkpoint_ns"),),
    partial=(PartialIndex("by_user", ("user_id",), "user_id IS NOT NULL"),),
)

CHECKPOINTS = Table(
    "langgraph_checkpoints",
    (
        Column("thread", "integer", parent=_THREAD_ROW),
        Column("checkpoint_id", "identifier"),
        Column("parent_id", "identifier", required=False),
        Column("run_id", "identifier", required=False),
        Column("kind"),
        Column("checkpoint", "bytes"),
        Column("metadata_kind"),
        Column("metadata", "bytes"),
    ),
    key=("thread", "checkpoint_id"),
    without_rowid=True,
    partial=(PartialIndex("by_run", ("run_id",), "run_id IS NOT NULL"),),
)

VALUES = Table(
    "langgraph_values",
    (
        Column("thread", "integer", parent=_THREAD_ROW),
        Column("channel", "identifier"),
        Column("version", "identifier"),
        Column("kind"),
        Column("value", "bytes"),
    ),
    key=("thread", "version", "channel"),  # versions ascend: the values of a step lie together
    without_rowid=True,
)

ITEMS = Table(
    "langgraph_items",
    (
        Column("thread", "integer", parent=_THREAD_ROW),
        Column("channel", "identifier"),
        Column("position", "integer"),
        Column("kind"),
        Column("value", "bytes"),
    ),
    key=("thread", "channel", "position"),
    without_rowid=True,
)

WRITES = Table(
    "langgraph_writes",
    (
        Column("thread", "integer", parent=_THREAD_ROW),
        Column("checkpoint_id", "identifier"),
        Column("task_id", "identifier"),
        Column("number", "integer"),
        Column("task_path"),
        Column("channel"),
        Column("kind"),
        Column("value", "bytes"),
    ),
    key=("thread", "checkpoint_id", "task_id", "number"),
    without_rowid=True,
)

TABLES = (THREADS, CHECKPOINTS, VALUES, ITEMS, WRITES)


@dataclass(frozen=True)
class CheckpointSchema(Schema):
    """The schema of the checkpoints of LangGraph."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "langgraph_checkpoints"

    def described(self) -> Sequence[Table]:
        """The tables."""
        return TABLES
