"""The settings of conversations, in their rows."""

from collections.abc import Mapping

from ...errors import ConflictError
from ...sql.scripts import Row, Script, Statement
from ..settings import ConversationSettings
from .corrupt import or_none, stored_flag, stored_object, value_or
from .schema import CONVERSATIONS

_NAMES = ("memory_strategy", "memory_injection", "provider_conversation_id")
READ = (
    f"SELECT conversation_id, {', '.join(_NAMES)}, coalesce(settings_version, 1)"
    f" FROM {CONVERSATIONS.name} WHERE conversation_id = ?1 AND tenant = ?2"
)
_CHANGE = f"UPDATE {CONVERSATIONS.name} SET {{}} WHERE conversation_id = ?1"


def change(
    lock: str, tenant: str, conversation_id: str, changes: Mapping[str, str | None], version: int | None
) -> Script[ConversationSettings | None]:
    """Change some settings; `None` if there is no such conversation. Another version is a `ConflictError`."""
    rows = yield Statement(READ + lock, (conversation_id, tenant))
    if not rows:
        return None
    stored = list(rows[0])
    if version not in (None, stored[-1]):
        raise ConflictError("the settings have been changed since they were read")
    if changes:
        changed = {**changes, "settings_version": stored[-1] + 1}
        listed = ", ".join(f"{name} = ?{number}" for number, name in enumerate(changed, 2))
        yield Statement(_CHANGE.format(listed), (conversation_id, *changed.values()))
        values = [changes.get(name, stored[place]) for place, name in enumerate(_NAMES, 1)]
        stored = [conversation_id, *values, stored[-1] + 1]
    return from_rows([tuple(stored)])


def from_rows(rows: list[Row]) -> ConversationSettings | None:
    """The settings that a row holds, if there is one; a corrupt one counts as not set."""
    if not rows:
        return None
    conversation_id, strategy, injection, provider_conversation_id, version = rows[0]
    return ConversationSettings(
        conversation_id,
        value_or(CONVERSATIONS.name, conversation_id, or_none(stored_object), strategy, None),
        value_or(CONVERSATIONS.name, conversation_id, or_none(stored_flag), injection, None),
        provider_conversation_id,
        version,
    )
