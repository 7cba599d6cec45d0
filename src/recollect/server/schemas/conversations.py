"""Conversations and their messages."""

from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator

from ...memory.content_parts import MOST_PARTS, Attachment, read_parts
from . import examples
from .base import (
    MAX_ITEMS,
    MAX_TEXT_LENGTH,
    NOT_BLANK,
    Key,
    Metadata,
    Name,
    NextCursor,
    OwnerId,
    PageQuery,
    RequestBody,
    ResponseBody,
    Tags,
    Text,
    Time,
    Timestamp,
    with_examples,
)

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]


class ContentParts(NamedTuple):
    """The content parts of a message: the joined text, and the attachments."""

    text: str
    attachments: tuple[Attachment, ...]


def _read_text_or_parts(given: Any, read_text: ValidatorFunctionWrapHandler) -> str | ContentParts:
    """Validate a text or a list of content parts. A union type would name types in errors, not the field."""
    if not isinstance(given, list):
        text: str = read_text(given)
        return text
    try:
        parts = ContentParts(*read_parts("it", given))
    except TypeError as error:
        raise ValueError(str(error)) from error
    read_text(parts.text)
    return parts


Content: TypeAlias = Annotated[
    Text,
    WrapValidator(_read_text_or_parts),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH, "pattern": NOT_BLANK},
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MOST_PARTS,
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string", "minLength": 1, "maxLength": 64}},
                    },
                },
            ],
            "description": "A text, or a list of content parts such as `{type: text, text: …}`. The texts are"
            " searched and learned from. Other parts become attachments: their inline data is replaced by"
            " its size and SHA-256, and is not stored.",
        }
    ),
]


class NewMessage(RequestBody):
    """A new message."""

    model_config = with_examples({"role": "user", "content": "I live in Lisbon."})

    role: Role
    content: Content
    name: (
        Annotated[
            Name,
            Field(
                description="The display name of the speaker, or the tool. If the `user` messages of a"
                " conversation have several names, or some have none, those under another name than the"
                " user_id come from other participants: nothing is learned from them about the user."
            ),
        ]
        | None
    ) = None
    message_id: Annotated[Key, Field(description="Generated if absent.")] | None = None
    created_at: Annotated[Time, Field(description="The time of the message; now if absent.")] | None = None
    attachments: (
        Annotated[
            list[dict[str, Any]],
            Field(
                max_length=MOST_PARTS,
                fail_fast=True,
                description="Attachments as a stored message has them. Only with a text as content.",
            ),
        ]
        | None
    ) = None

    message_index: (
        Annotated[
            int,
            Field(
                ge=0,
                lt=2**62,
                description="As a stored message has it; it must ascend. It is assigned anew.",
            ),
        ]
        | None
    ) = None

    def to_store(self, message_id: str) -> dict[str, Any]:
        """The message as the store takes it. `message_id` is used if the message has none."""
        content: str | ContentParts = self.content
        given = tuple(self.attachments or ())
        text, attachments = content if isinstance(content, ContentParts) else (content, given)
        return {
            "message_id": self.message_id or message_id,
            "role": self.role,
            "name": self.name,
            "content": text,
            "attachments": attachments,
            "created_at": self.created_at,
        }


def _check_order(messages: list[NewMessage]) -> list[NewMessage]:
    """Refuse messages whose indexes contradict their order in the list."""
    given = [each.message_index for each in messages if each.message_index is not None]
    if any(later <= earlier for earlier, later in pairwise(given)):
        raise ValueError("messages must be in the order of message_index")
    return messages


Messages: TypeAlias = Annotated[
    list[NewMessage],
    Field(min_length=1, max_length=MAX_ITEMS, fail_fast=True),
    AfterValidator(_check_order),
]

_IGNORED = Field(
    default=None,
    description="Accepted as a stored conversation has it, and ignored.",
    json_schema_extra={"readOnly": True},
)


class NewConversation(RequestBody):
    """A new conversation of an agent and a user, or one as it was read, without what the service derives."""

    model_config = with_examples(
        {
            "agent_id": examples.AGENT,
            "user_id": examples.USER,
            "messages": [
                {"role": "user", "content": "I live in Lisbon."},
                {"role": "assistant", "content": "Noted!"},
            ],
        }
    )

    agent_id: OwnerId
    user_id: OwnerId
    messages: Messages
    conversation_id: (
        Annotated[
            Key,
            Field(
                description="Generated if absent. Saving the same conversation again under its id changes"
                " nothing; another conversation under an id in use is a conflict."
            ),
        ]
        | None
    ) = None
    session_id: Annotated[Key, Field(description="Generated if absent.")] | None = None
    memory_id: (
        Annotated[
            Key,
            Field(
                description="The id of the memory of this agent and user. If they have none yet, it is"
                " created with this id; any other id is a conflict."
            ),
        ]
        | None
    ) = None
    created_at: (
        Annotated[Time, Field(description="The start time; also the time of messages without their own.")]
        | None
    ) = None
    metadata: Metadata | None = None
    tags: Tags | None = None
    turn_count: int | None = _IGNORED
    summary: str | None = _IGNORED
    updated_at: Time | None = _IGNORED
    closed_at: Time | None = _IGNORED
    conversation_data: dict[str, Any] | None = _IGNORED
    pipeline_result: dict[str, Any] | None = _IGNORED


class OpenedConversation(RequestBody):
    """The owner of a conversation that has no messages yet, and its settings."""

    model_config = with_examples({"agent_id": examples.AGENT, "user_id": examples.USER})

    agent_id: OwnerId
    user_id: OwnerId
    session_id: Annotated[Key, Field(description="Generated if absent.")] | None = None
    memory_strategy: (
        Annotated[dict[str, Any], Field(description="What the model sees; the agent decides if absent.")]
        | None
    ) = None
    memory_injection: bool | None = None
    metadata: Metadata | None = None
    tags: Tags | None = None


class ConversationSaved(ResponseBody):
    """The conversation is stored, and learning from it has started."""

    model_config = with_examples(
        {
            "success": True,
            "message": "Conversation saved successfully",
            "conversation_id": examples.CONVERSATION_ID,
            "session_id": examples.SESSION_ID,
            "created_at": examples.TIME,
            "message_count": 2,
        }
    )

    success: Literal[True]
    message: Literal["Conversation saved successfully"]
    conversation_id: str
    session_id: str
    created_at: Timestamp
    message_count: int
    learned: bool | None = Field(
        default=None,
        description="Only with `wait`: whether everything recorded for this agent and user is learned.",
    )


class MessagePayload(ResponseBody):
    """A message of a conversation."""

    model_config = with_examples(examples.MESSAGE)

    message_id: str
    role: Role
    name: str | None = Field(description="The speaker or the tool, if named.")
    content: str
    attachments: list[dict[str, Any]] = Field(
        description="The content parts other than text, each with its position as `part_index`."
    )
    message_index: int = Field(description="The position in the conversation, from 0.")
    created_at: Timestamp


_OUTLINE: dict[str, Any] = {
    "conversation_id": examples.CONVERSATION_ID,
    "agent_id": examples.AGENT,
    "user_id": examples.USER,
    "session_id": examples.SESSION_ID,
    "created_at": examples.TIME,
    "updated_at": examples.TIME,
    "closed_at": None,
    "turn_count": 2,
    "memory_id": examples.MEMORY_ID,
    "metadata": {},
    "tags": [],
    "summary": "Conversation with 2 turns: I live in Lisbon....",
}


class ConversationOutline(ResponseBody):
    """A conversation without its messages."""

    model_config = with_examples(_OUTLINE)

    conversation_id: str
    agent_id: str
    user_id: str
    session_id: str
    created_at: Timestamp
    updated_at: Timestamp = Field(description="When a message was last added.")
    closed_at: Timestamp | None = Field(description="When it was closed; null while it is open.")
    turn_count: int = Field(description="The number of messages.")
    memory_id: str | None
    metadata: dict[str, Any]
    tags: list[str]
    summary: str


class ConversationData(ResponseBody):
    """The messages of a conversation."""

    messages: list[MessagePayload]


class ConversationPayload(ConversationOutline):
    """A conversation with its messages."""

    model_config = with_examples(
        {
            **_OUTLINE,
            "pipeline_result": None,
            "messages": [examples.MESSAGE, examples.REPLY],
            "conversation_data": {"messages": [examples.MESSAGE, examples.REPLY]},
        }
    )

    pipeline_result: dict[str, Any] | None = Field(description="The result of the latest run.")
    messages: list[MessagePayload]
    conversation_data: ConversationData = Field(description="The same messages.")


class ConversationPage(ResponseBody):
    """Conversations, newest first. With `q`, or `agent_id` alone, a short page may have a next one."""

    model_config = with_examples({"items": [_OUTLINE], "next_cursor": None})

    items: list[ConversationOutline]
    next_cursor: NextCursor


class MoreMessages(RequestBody):
    """Messages to append."""

    model_config = with_examples(
        {"messages": [{"role": "user", "content": "I started a pottery class yesterday."}]}
    )

    messages: Messages
    learn_after: (
        Annotated[
            float,
            Field(
                ge=0,
                le=86_400,
                description="Seconds without a new message after which learning starts; at once if absent.",
            ),
        ]
        | None
    ) = None
    learn: bool = Field(default=True, description="Whether to learn from the messages.")
    even_if_closed: bool = Field(
        default=False, description="Allow the reply to a message from before the close."
    )


class MessagesAdded(ResponseBody):
    """The appended messages with their positions in the conversation."""

    model_config = with_examples(
        {"conversation_id": examples.CONVERSATION_ID, "messages": [examples.LATER_MESSAGE]}
    )

    conversation_id: str
    messages: list[MessagePayload]


class MessageQuery(PageQuery):
    """Filters of the list of messages."""

    from_index: (
        Annotated[int, Field(ge=0, le=2**31, description="The `message_index` of the first message.")] | None
    ) = None
    around: Annotated[Key, Field(description="The id of the message in the middle of the page.")] | None = (
        None
    )


class MessagePage(ResponseBody):
    """Messages in order."""

    model_config = with_examples({"items": [examples.MESSAGE, examples.REPLY], "next_cursor": None})

    items: list[MessagePayload]
    next_cursor: NextCursor


class ReceiptPayload(ResponseBody):
    """The receipt of an erasure: rows by kind, a keyed hash of the user's id, and what remains."""

    model_config = with_examples(examples.RECEIPT)

    erased_at: Timestamp
    counts: dict[str, int]
    subject: str = Field(description="The hash of the user's id, keyed by tenant.")
    remains: dict[str, str] = Field(
        description="Where the erased data may still be, and until when, by place: backups, database, log."
    )
