"""The JSON Schema of a line. A test compares it with `docs/reference/import-lines.schema.json`."""

from typing import Any

from ..memory.rights.exports import FORMAT

_TIME = {"type": "string", "description": "A time in ISO 8601; in UTC if it has no zone."}
_OPTIONAL_TIME = {**_TIME, "type": ["string", "null"]}
_ID = {"type": ["string", "null"], "maxLength": 255}
_OWNER = {
    "user_id": {"type": ["string", "null"], "description": "The user; the default of the import if absent."},
    "agent_id": {
        "type": ["string", "null"],
        "description": "The agent; the default of the import if absent.",
    },
}
_LABELS = {
    "metadata": {"type": ["object", "null"], "description": "A small JSON object, at most 16,384 bytes."},
    "tags": {"type": ["array", "null"], "items": {"type": "string"}},
}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["user", "assistant", "system", "tool"]},
        "content": {
            "description": "A text, or a list of content parts. Parts that are not text become references.",
            "type": ["string", "array"],
            "minLength": 1,
        },
        "message_id": {**_ID, "description": "Stable between imports; made from its place if absent."},
        "message_index": {"type": "integer", "minimum": 0, "description": "Its place in the conversation."},
        "created_at": {**_OPTIONAL_TIME, "description": "When it was said; the conversation's if absent."},
        "name": {"type": ["string", "null"], "description": "The name of the participant or tool."},
        "attachments": {"type": ["array", "null"], "items": {"type": "object"}},
    },
    "additionalProperties": False,
}
_MESSAGES = {"type": "array", "items": _MESSAGE}
_CONVERSATION = {
    "type": "object",
    "properties": {
        **_OWNER,
        **_LABELS,
        "conversation_id": {
            **_ID,
            "description": "Stable between imports; made from its contents if absent.",
        },
        "session_id": _ID,
        "created_at": {**_OPTIONAL_TIME, "description": "When it began; the first message's if absent."},
        "messages": _MESSAGES,
        "conversation_data": {"description": "The same, as exports have it.", "type": ["object", "array"]},
    },
    "anyOf": [{"required": ["messages"]}, {"required": ["conversation_data"]}],
}
_ENTRY = {
    "type": "object",
    "properties": {
        **_OWNER,
        **_LABELS,
        "content_id": {**_ID, "description": "Stable between imports; made from its contents if absent."},
        "memory_id": {**_ID, "description": "Instead of the user and the agent, in exports."},
        "text": {"type": "string", "minLength": 1},
        "type": {"enum": ["profile", "event", "mind", "instruction"], "default": "profile"},
        "content_text": {"type": "string", "description": "The name of `text` in exports."},
        "content_type": {"type": "string", "description": "The name of `type` in exports."},
        "learned_at": {**_OPTIONAL_TIME, "description": "Since when it is known; now if absent."},
        "said_at": _OPTIONAL_TIME,
        "valid_from": {"type": ["string", "null"], "description": "A day, a month or a year: 2024-05-07."},
        "valid_to": {"type": ["string", "null"]},
        "retired_at": {**_OPTIONAL_TIME, "description": "When it stopped being current."},
        "superseded_by": {**_ID, "description": "The content_id of the entry that replaced it."},
        "expires_at": _OPTIONAL_TIME,
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "evidence": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["conversation_id", "message_id"],
                "properties": {"conversation_id": {"type": "string"}, "message_id": {"type": "string"}},
            },
        },
    },
    "anyOf": [{"required": ["text"]}, {"required": ["content_text"]}],
}
_SESSION = {
    "type": "object",
    "required": ["session_id"],
    "properties": {
        **_OWNER,
        "session_id": {"type": "string"},
        "created_at": _OPTIONAL_TIME,
        "updated_at": _OPTIONAL_TIME,
        "title": {"type": ["string", "null"]},
        "items": {"type": "array", "description": "Items in the format of the OpenAI Responses API."},
        "times": {"type": "array", "items": _OPTIONAL_TIME, "description": "The time of each item."},
        "paths": {
            "type": "object",
            "description": "The branches: a list of indexes in `items` for each. `main` is the current one.",
            "additionalProperties": {"type": "array", "items": {"type": "integer"}},
        },
        "branches": {"type": "array", "items": {"type": "object", "required": ["branch_id"]}},
        "usage": {"type": "array", "items": {"type": "object"}},
    },
}
_DATA: dict[str, dict[str, Any]] = {
    "conversations": _CONVERSATION,
    "messages": {
        "type": "object",
        "description": "More messages of the conversation on the line before.",
        "required": ["conversation_id", "messages"],
        "properties": {"conversation_id": {"type": "string"}, "messages": _MESSAGES},
    },
    "entries": _ENTRY,
    "memories": {"type": "object", "properties": _OWNER},
    "sessions": _SESSION,
    "items": {**_SESSION, "description": "More items of the session on the line before."},
    "runs": {"type": "object", "description": "As exports have them."},
    "events": {"type": "object", "description": "As exports have them."},
    "summaries": {"type": "object", "description": "As exports have them."},
    "threads": {"type": "object", "description": "As exports have them. They are not imported."},
}

LINE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A line of an import or export of Recollect",
    "oneOf": [
        {
            "type": "object",
            "description": "The first line, which may be absent.",
            "required": ["format"],
            "properties": {"format": {"const": FORMAT}},
            "not": {"required": ["kind"]},
        },
        *(
            {
                "type": "object",
                "required": ["kind", "data"],
                "properties": {"kind": {"const": kind}, "data": data},
            }
            for kind, data in _DATA.items()
        ),
    ],
}
"""The schema of one line."""
