"""The branches of a chat."""

from typing import Annotated, Any

from fastapi import Path, Request, Response

from ...memory.conversation import Conversation
from ...providers.protocol import ChatInspector
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, refused_input
from ..schemas import branches as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import ConversationId, allow_only, find_conversation, note_target, refused

router = make_router("conversations")

_CURRENT = "current"  # what stands in a path for the branch that is current
_CURRENT_PATH = f"/v1/conversations/{{conversation_id}}/branches/{_CURRENT}"
_Name = Annotated[
    str, Path(min_length=1, max_length=255, description="Of the branch.", examples=["other-city"])
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
    """Every chat has the branch `main`."""
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        branches = await service.provider.inspector.branches_of(conversation)
    return answer_json({"items": [_tell(branch) for branch in branches]})


@router.post(
    "/v1/conversations/{conversation_id}/branches",
    operation_id="branches.create",
    summary="Branch off before a turn",
    status_code=201,
    response_model=schemas.BranchMade,
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
    """The new branch holds everything before that user turn, and the chat goes on there."""
    note_target(request, "conversation", conversation_id)
    if body.name == _CURRENT:
        raise refused("body.name", f"must not be {_CURRENT!r}, which stands for the branch that is current")
    conversation = await find_conversation(store, conversation_id)
    inspector = service.provider.inspector

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(conversation.user_id)
        name = body.name or f"from-turn-{body.from_turn}-{ids('branch')[:8]}"
        with refused_input():
            if ids.are_new or (name, body.from_turn) not in await _made(inspector, conversation):
                await inspector.create_branch(conversation, body.from_turn, name)
        return {"name": name}

    name = (await once(make))["name"]
    branches = await inspector.branches_of(conversation)
    told = next((_tell(branch) for branch in branches if branch["name"] == name), None)
    if told is None:
        raise Problem("not_found", "the branch has been deleted since")
    return answer_json(told, 201)


@router.put(
    _CURRENT_PATH,
    operation_id="branches.switch",
    summary="Go on with another branch",
    response_model=schemas.BranchTold,
    responses=problems("send", "not_found", "conflict", "conversation_busy"),
)
async def switch_branch(
    conversation_id: ConversationId,
    body: schemas.BranchChoice,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
) -> Response:
    """The branch becomes the current one, on which the next turn goes on."""
    note_target(request, "conversation", conversation_id)
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        branch = await service.provider.inspector.switch_branch(conversation, body.name)
    return answer_json(_tell(branch))


@router.delete(
    "/v1/conversations/{conversation_id}/branches/{name:path}",
    operation_id="branches.delete",
    summary="Delete a branch",
    status_code=204,
    response_description="The branch is gone.",
    responses=problems("read", "not_found", "conflict", "conversation_busy"),
)
async def delete_branch(
    conversation_id: ConversationId, name: _Name, request: Request, store: WriteStore, service: ServiceDep
) -> Response:
    """No item goes that another branch shows. `main` and the current branch cannot be deleted."""
    note_target(request, "conversation", conversation_id)
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        if not await service.provider.inspector.delete_branch(conversation, name):
            raise Problem("not_found", "there is no branch of this name")
    return Response(status_code=204)


async def _made(inspector: ChatInspector, conversation: Conversation) -> set[tuple[str, int | None]]:
    """The branches by name and turn: among them may be what an attempt before this one has made."""
    return {(branch["name"], branch["from_turn"]) for branch in await inspector.branches_of(conversation)}


def _tell(branch: dict[str, Any]) -> dict[str, Any]:
    return {field: branch[field] for field in schemas.BranchTold.model_fields}
