"""What is said in a turn: which messages can be asked, and where they are written."""

import uuid

from ...errors import InvalidTypeError, InvalidValueError
from ...memory.conversation import Message
from ..values import ChatTurn

_IDS = uuid.UUID("8f1d5a52-6f0c-4a55-9a3e-6d1f5f0c1c8e")


def message_id(turn_id: str, role: str) -> str:
    """The id of a turn's message, always the same, so that nothing is written twice."""
    return str(uuid.uuid5(_IDS, f"{turn_id}/{role}"))


def check_message(message: object) -> None:
    """Refuse what no model can be asked."""
    if not isinstance(message, str):
        raise InvalidTypeError(f"message must be text, not {type(message).__name__}")
    if not message.strip():
        raise InvalidValueError("message must not be empty")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise InvalidValueError("message holds half a character, which cannot be sent") from None


async def append_message(
    turn: ChatTurn, role: str, text: str, quiet: float | None, *, even_if_closed: bool = False
) -> Message:
    """Write a message of a turn into its conversation; one that is there already stays as it is."""
    message = {"role": role, "content": text, "message_id": message_id(turn.turn_id, role)}
    placed = await turn.store.append_messages(
        turn.conversation.conversation_id, [message], learn_after=quiet, even_if_closed=even_if_closed
    )
    return placed[0]
