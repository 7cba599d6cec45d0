"""The import of lines: its parameters and its result."""

from pydantic import Field

from .base import OwnerId, QueryParameters, ResponseBody, with_examples


class ImportQuery(QueryParameters):
    """What applies to lines that do not say otherwise."""

    user_id: OwnerId | None = Field(default=None, description="The user of lines that name none.")
    agent_id: OwnerId | None = Field(default=None, description="The agent of lines that name none.")
    learn: bool = Field(
        default=True,
        description="Learn from the conversations: the oldest first, while no live conversation waits.",
    )


class ImportProblem(ResponseBody):
    """A part that was lost or changed."""

    where: str
    reason: str


class ImportResult(ResponseBody):
    """What was imported."""

    model_config = with_examples(
        {
            "added": {"conversations": 1, "messages": 2},
            "existing": {},
            "lost": 1,
            "problems": [{"where": "line 3", "reason": "it is not valid JSON"}],
            "empty": {},
        }
    )

    added: dict[str, int] = Field(description="New records by kind.")
    existing: dict[str, int] = Field(description="Records that were stored already, by kind.")
    lost: int = Field(description="How many parts were lost or changed.")
    problems: list[ImportProblem] = Field(description="The first thousand of them.")
    empty: dict[str, int] = Field(description="Parts with nothing to import, by reason.")
