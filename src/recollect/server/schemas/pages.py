"""Pages about users."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from ...memory.page import DEFAULT_BUDGET, MAX_BUDGET
from . import examples
from .base import MAX_WAIT, OwnerId, PageSize, QueryParameters, ResponseBody, Time, Timestamp, with_examples
from .entries import EvidencePayload

Section: TypeAlias = Literal["identity", "relations", "instructions", "events", "wishes"]
_Budget: TypeAlias = Annotated[
    int, Field(ge=0, le=MAX_BUDGET, description="The most tokens of the page, in each of its two forms.")
]
_Wait: TypeAlias = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_WAIT,
        description="Seconds to wait at most until everything recorded for this agent and user is learned.",
    ),
]
_PAGE: dict[str, Any] = {
    "agent_id": examples.AGENT,
    "user_id": examples.OTHER_USER,
    "version": "a1a1a1a1a1a1a1a1",
    "text": "# ben\n\n## Who they are\n\n- The user plays the cello. [m1]\n",
    "prompt": "<remembered-data>\n…\nWho they are:\n> - The user plays the cello.\n</remembered-data>",
    "lines": [
        {
            "mark": "m1",
            "section": "identity",
            "text": "The user plays the cello.",
            "content_id": examples.CONTENT_ID,
            "is_doubtful": False,
            "evidence": [],
        }
    ],
    "left_out": 0,
    "as_of": None,
}


class UserPageQuery(QueryParameters):
    """The agent and user of a page, its length, and the time of the knowledge to read."""

    agent_id: Annotated[OwnerId, Field(examples=[examples.AGENT])]
    user_id: Annotated[OwnerId, Field(examples=[examples.OTHER_USER])]
    as_of: Annotated[Time, Field(description="The memory as known at this time.")] | None = None
    budget: _Budget = DEFAULT_BUDGET
    wait: _Wait | None = None


class PageHistoryQuery(QueryParameters):
    """The agent and user of pages, and how many to read."""

    agent_id: Annotated[OwnerId, Field(examples=[examples.AGENT])]
    user_id: Annotated[OwnerId, Field(examples=[examples.OTHER_USER])]
    budget: _Budget = DEFAULT_BUDGET
    limit: PageSize | None = None


class PageLinePayload(ResponseBody):
    """One line of a page."""

    mark: str = Field(description="Its mark in the Markdown, without the brackets. An entry keeps its mark.")
    section: Section
    text: str = Field(description="The text on one line, with its date.")
    content_id: str = Field(description="The entry.")
    is_doubtful: bool
    evidence: list[EvidencePayload] = Field(description="Up to ten messages that it rests on.")


class UserPagePayload(ResponseBody):
    """What an agent knows about a user, on one page."""

    model_config = with_examples(_PAGE)

    agent_id: str
    user_id: str
    version: str = Field(description="A digest of the page; also the ETag.")
    text: str = Field(description="Markdown, with a mark at the end of each line. Empty if nothing is known.")
    prompt: str = Field(description="The page for a prompt, framed as data. Empty if nothing is known.")
    lines: list[PageLinePayload]
    left_out: int = Field(description="The number of current entries that are not on the page.")
    as_of: Timestamp | None


class PageHistory(ResponseBody):
    """Versions of a page, the latest first."""

    model_config = with_examples({"items": [{**_PAGE, "as_of": examples.TIME}]})

    items: list[UserPagePayload]
