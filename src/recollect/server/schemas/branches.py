"""The branches of a chat."""

from typing import Annotated

from pydantic import Field

from . import examples
from .base import RequestBody, ResponseBody, Timestamp, with_examples

_BRANCH = {
    "name": "main",
    "is_current": True,
    "from_branch": None,
    "from_turn": None,
    "item_count": 3,
    "user_turn_count": 2,
    "turn_count": 2,
    "created_at": examples.TIME,
}
_NEW_BRANCH = {
    "name": "other-city",
    "is_current": True,
    "from_branch": "main",
    "from_turn": 1,
    "item_count": 0,
    "user_turn_count": 0,
    "turn_count": 0,
    "created_at": examples.LATER,
}


class BranchPayload(ResponseBody):
    """A branch of a chat."""

    model_config = with_examples(_BRANCH)

    name: str
    is_current: bool
    from_branch: str | None = Field(description="The branch it was created from; null for main.")
    from_turn: int | None = Field(description="The user turn before which it was created.")
    item_count: int
    user_turn_count: int = Field(description="The number of user turns.")
    turn_count: int = Field(
        deprecated=True,
        description="The same as `user_turn_count`. In a conversation, `turn_count` counts messages.",
    )
    created_at: Timestamp | None


class Branches(ResponseBody):
    """The branches of a chat."""

    model_config = with_examples({"items": [_BRANCH]})

    items: list[BranchPayload]


BranchName = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\u0000]+$", examples=["other-city"])
]


class NewBranch(RequestBody):
    """A new branch with everything before a user turn. It becomes the current branch."""

    model_config = with_examples({"from_turn": 1, "name": "other-city"})

    from_turn: int = Field(ge=1, le=2**31, description="The number of the user turn, from 1.")
    name: Annotated[BranchName, Field(description="Generated if absent.")] | None = None


class BranchChoice(RequestBody):
    """The branch to switch to."""

    model_config = with_examples({"name": "main"})

    name: BranchName


class NewBranchPayload(BranchPayload):
    """The new branch, which is now current."""

    model_config = with_examples(_NEW_BRANCH)
