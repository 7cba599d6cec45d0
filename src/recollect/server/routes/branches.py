"""The branches of a chat."""

from typing import Annotated, Any

from fastapi import Path, Request, Response

from ...memory.conversation import Conversation
from ...providers.protocol import ChatInspector
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas import branches as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .shared import ConversationId, allow_only, find_conversation, invalid_field, set_audit_target

router = make_router("conversations")

_CURRENT = "current"  # in a path, this names the current branch
_CURRENT_PATH = f"/v1/conversations/{{conversation_id}}/branches/{_CURRENT}"
_Name = Annotated[
    str, Path(min_length=1, max_length=255, description="The name of the branch.", examples=["other-city"])
]

allow_only(router, "PUT", _CURRENT_PATH)


@router.get(
    "/v1/conversations/{conversation_id}/branches",
    operation_id="branches.list",
    summary="List the branches of a chat",
    response_model=schemas.Branches,
    responses=problems("read", "not_found"),
)
async def list_branches(conversation_id: ConversationId, store: ReadStore, service: ServiceDep) -> Response:
    """The branches of a chat. Every chat has the branch `main`."""
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        branches = await service.provider.inspector.branches_of(conversation)
    return json_response({"items": [_serialize(branch) for branch in branches]})


@router.post(
    "/v1/conversations/{conversation_id}/branches",
    operation_id="branches.create",
    summary="Create a branch before a turn",
    status_code=201,
    response_model=schemas.NewBranchPayload,
    responses=problems("create", "not_found", "conversation_busy"),
)
async def create_branch(
    conversation_id: ConversationId,
    body: schemas.NewBranch,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
) -> Response:
    """The new branch contains everything before that user turn, and becomes the current branch."""
    set_audit_target(request, "conversation", conversation_id)
    if body.name == _CURRENT:
        raise invalid_field("body.name", f"must not be {_CURRENT!r}, which names the current branch")
    conversation = await find_conversation(store, conversation_id)
    inspector = service.provider.inspector

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(conversation.user_id)
        name = body.name or f"from-turn-{body.from_turn}-{ids.short('branch')}"
        with translate_input_errors():
            if ids.are_new or (name, body.from_turn) not in await _made(inspector, conversation):
                await inspector.create_branch(conversation, body.from_turn, name)
        return {"name": name}

    name = (await once(make))["name"]
    branches = await inspector.branches_of(conversation)
    made = next((_serialize(branch) for branch in branches if branch["name"] == name), None)
    if made is None:
        raise Problem("not_found", "The branch has been deleted since.")
    return json_response(made, 201)


@router.put(
    _CURRENT_PATH,
    operation_id="branches.switch",
    summary="Switch to another branch",
    response_model=schemas.BranchPayload,
    responses=problems("send", "not_found", "conflict", "conversation_busy"),
)
async def switch_branch(
    conversation_id: ConversationId,
    body: schemas.BranchChoice,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
) -> Response:
    """Make a branch the current one. The next turn continues there."""
    set_audit_target(request, "conversation", conversation_id)
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        branch = await service.provider.inspector.switch_branch(conversation, body.name)
    return json_response(_serialize(branch))


@router.delete(
    "/v1/conversations/{conversation_id}/branches/{name:path}",
    operation_id="branches.delete",
    summary="Delete a branch",
    status_code=204,
    response_description="The branch is deleted.",
    responses=problems("read", "not_found", "conflict", "conversation_busy"),
)
async def delete_branch(
    conversation_id: ConversationId, name: _Name, request: Request, store: WriteStore, service: ServiceDep
) -> Response:
    """Items that another branch shows stay. `main` and the current branch cannot be deleted."""
    set_audit_target(request, "conversation", conversation_id)
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        if not await service.provider.inspector.delete_branch(conversation, name):
            raise Problem("not_found", "There is no branch with this name.")
    return Response(status_code=204)


async def _made(inspector: ChatInspector, conversation: Conversation) -> set[tuple[str, int | None]]:
    """The existing branches by name and turn. An earlier attempt may have made the requested one."""
    return {(branch["name"], branch["from_turn"]) for branch in await inspector.branches_of(conversation)}


def _serialize(branch: dict[str, Any]) -> dict[str, Any]:
    return {field: branch[field] for field in schemas.BranchPayload.model_fields}
