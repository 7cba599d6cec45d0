"""Threads of LangGraph: list them, and read their branches and steps.

LangGraph knows no tenants: threads belong to the default tenant, and no other tenant finds any. A thread is
named in the query string, as its id may be any text.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Response

from ...cursors import make_cursor
from ...errors import MissingExtraError
from ...extras import require_extra
from ...integrations.langgraph.threads import ThreadInfo
from ...memory.rights.personal_data import DEFAULT_TENANT
from ...memory.times import format_time, read_time
from ..access.authentication import Caller
from ..cursors import read_cursor
from ..dependencies import Reader, ServiceDep, make_router
from ..problems import Problem, translate_input_errors
from ..schemas import threads as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from ..service import Service
from .shared import check_page_size, long_json_response, require_admin_without_owner, require_found

if TYPE_CHECKING:
    from ...integrations.langgraph.branches import Branch
    from ...integrations.langgraph.viewing import ThreadOutline, ThreadViewer

router = make_router("threads")

_NO_THREAD = "thread"


@router.get(
    "/v1/threads",
    operation_id="threads.list",
    summary="List threads of LangGraph",
    response_model=schemas.ThreadPage,
    responses=problems("read"),
)
async def list_threads(
    query: Annotated[schemas.ThreadListQuery, Query()], caller: Reader, service: ServiceDep
) -> Response:
    """Threads of a user, those that changed last first. Without a user, it needs the scope admin."""
    require_admin_without_owner(caller, query.user_id)
    limit = check_page_size(service, query.limit)
    found: Sequence[ThreadInfo] = ()
    with translate_input_errors():
        after = _read_position(query.cursor)
        if caller.tenant == DEFAULT_TENANT:
            found = await service.threads.list(user_id=query.user_id, after=after, limit=limit + 1)
    return json_response(
        {"items": [_serialize(each) for each in found[:limit]], "next_cursor": _next(found, limit)}
    )


def _read_position(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    text, thread_id = read_cursor("threads", cursor, str, str)
    time = read_time("query.cursor", text)
    return None if time is None else (time, thread_id)


def _next(found: Sequence[ThreadInfo], limit: int) -> str | None:
    if len(found) <= limit:
        return None
    last = found[limit - 1]
    return make_cursor("threads", last.updated_at.isoformat(), last.thread_id)


def _serialize(thread: ThreadInfo) -> dict[str, Any]:
    return {
        "thread_id": thread.thread_id,
        "user_id": thread.user_id,
        "checkpoint_count": thread.checkpoints,
        "created_at": format_time(thread.created_at),
        "updated_at": format_time(thread.updated_at),
    }


@router.get(
    "/v1/threads/branches",
    operation_id="threads.branches",
    summary="Read the branches of a thread",
    response_model=schemas.ThreadBranches,
    responses=problems("read", "not_found", "extra_missing"),
)
async def get_branches(
    query: Annotated[schemas.ThreadQuery, Query()], caller: Reader, service: ServiceDep
) -> Response:
    """The branches of a thread: the first line of steps is `main`, and each fork is a branch."""
    _, outline = await _find(caller, service, query)
    return json_response(
        {
            "thread_id": outline.thread_id,
            "user_id": outline.user_id,
            "namespace": outline.namespace,
            "namespaces": outline.namespaces,
            "items": [_serialize_branch(branch) for branch in outline.branches],
        }
    )


def _serialize_branch(branch: "Branch") -> dict[str, Any]:
    return {
        "name": branch.name,
        "is_current": branch.is_current,
        "from_branch": branch.from_branch,
        "from_step": None if branch.from_branch is None else len(branch.before) + 1,
        "step_count": len(branch.steps),
    }


@router.get(
    "/v1/threads/steps",
    operation_id="threads.steps",
    summary="List the steps of a thread",
    response_model=schemas.StepPage,
    responses=problems("read", "not_found", "extra_missing"),
)
async def list_steps(
    query: Annotated[schemas.StepQuery, Query()], caller: Reader, service: ServiceDep
) -> Response:
    """The steps of a branch, the newest first: the messages that each added, and what else it changed."""
    limit = check_page_size(service, query.limit)
    viewer, outline = await _find(caller, service, query)
    from ...integrations.langgraph.place import (
        CheckpointPlace,  # after `_find`, which says if the extra is missing
    )

    branch = next((each for each in outline.branches if _is_wanted(each, query.branch)), None)
    ids = require_found(branch, "branch").steps
    end = len(ids) if query.cursor is None else min(read_cursor("steps", query.cursor, int)[0], len(ids))
    start = max(0, end - limit)
    steps = await viewer.steps(CheckpointPlace(query.thread_id, query.namespace), ids[start:end][::-1])
    positions = {name: number for number, name in enumerate(ids, 1)}
    found = [{"position": positions[step.checkpoint_id], **asdict(step)} for step in steps]
    for each in found:
        each["changes"] = [change._asdict() for change in each["changes"]]
    cursor = make_cursor("steps", start) if start else None
    size = sum(len(step.items) for step in steps)
    return await long_json_response(lambda: {"items": found, "next_cursor": cursor}, size)


def _is_wanted(branch: "Branch", name: str | None) -> bool:
    return branch.is_current if name is None else branch.name == name


def _viewer_class() -> "type[ThreadViewer]":
    """Import the packages of LangGraph, which takes long at first. A service may not have them."""
    try:
        require_extra("langgraph", "langgraph.checkpoint.base", "Reading a thread")
    except MissingExtraError as error:
        raise Problem("extra_missing", f"{error}. Then restart the service.") from error
    from ...integrations.langgraph.viewing import ThreadViewer

    return ThreadViewer


async def _find(
    caller: Caller, service: Service, query: schemas.ThreadQuery
) -> "tuple[ThreadViewer, ThreadOutline]":
    """The thread that a query names. Raises `not_found`, also for another tenant, or `extra_missing`."""
    if caller.tenant != DEFAULT_TENANT:
        require_found(None, _NO_THREAD)
    viewer = (await asyncio.to_thread(_viewer_class))(service.threads)
    with translate_input_errors():
        outline = await viewer.outline(query.thread_id, query.namespace)
    return viewer, require_found(outline, _NO_THREAD)
