"""Shared values of the examples in the documentation, so that the examples fit together."""

from typing import Any

CONVERSATION_ID = "3f6a1d52-8c0e-4b7f-9a44-1f0d2b6c7e10"
SESSION_ID = "9b1e7c34-52d8-4f0a-8e6d-3a7c5b2f1d09"
MEMORY_ID = "c4d2e8f1-0b3a-4c6d-9e5f-7a8b1c2d3e4f"
WRITTEN_MEMORY_ID = "1a9f3c7e-5d2b-4e8a-b6c0-4f7d9e1a2b3c"
CONTENT_ID = "e7b5a3c1-9d8f-4a2e-8c6b-0d1f2e3a4b5c"
EDITED_CONTENT_ID = "f1c3e5a7-2b4d-4f6e-9a8c-1e3d5b7f9a0c"
TURN_ID = "6c2e9b1d-4f7a-4e3c-8d5b-9a0f1e2d3c4b"
RUN_ID = "5d8c2f7a-1e4b-4d9c-a3f6-8b0e7d5c4a21"
MESSAGE_ID = "b2d4f6a8-3c5e-4a7b-8d9f-6e1c3a5b7d90"
REPLY_ID = "d0f2b4c6-7a9e-4c1d-b3e5-2f4a6c8e0b1d"
LATER_MESSAGE_ID = "a8c6e4d2-1f3b-4e5d-9c7a-0b2d4f6e8a1c"
ENTRY_ID = "0190b2c4-audit"
KEY_ID = "k7f3a9c2"
SUBJECT = "5c1d0e7b6a2f4938c7b1d2e3f4a5968778695a4b3c2d1e0f9a8b7c6d5e4f3a2b"

AGENT = "assistant"
USER = "ada"
OTHER_USER = "ben"
TIME = "2026-11-16T09:30:00Z"
LATER = "2026-11-16T09:30:05Z"

MESSAGE: dict[str, Any] = {
    "message_id": MESSAGE_ID,
    "role": "user",
    "name": None,
    "content": "I live in Lisbon.",
    "attachments": [],
    "message_index": 0,
    "created_at": TIME,
}
REPLY: dict[str, Any] = {
    "message_id": REPLY_ID,
    "role": "assistant",
    "name": None,
    "content": "Noted!",
    "attachments": [],
    "message_index": 1,
    "created_at": TIME,
}
LATER_MESSAGE: dict[str, Any] = {
    "message_id": LATER_MESSAGE_ID,
    "role": "user",
    "name": None,
    "content": "I started a pottery class yesterday.",
    "attachments": [],
    "message_index": 2,
    "created_at": LATER,
}
ENTRY = {
    "content_id": CONTENT_ID,
    "memory_id": WRITTEN_MEMORY_ID,
    "content_type": "profile",
    "content_text": "The user is allergic to peanuts.",
    "content_data": {},
    "metadata": {"source": "intake form"},
    "tags": ["health"],
    "confidence": 1.0,
    "learned_at": TIME,
    "said_at": None,
    "valid_from": "2024-05",
    "valid_to": None,
    "retired_at": None,
    "superseded_by": None,
    "supersedes": [],
    "evidence": [],
    "expires_at": None,
    "last_confirmed_at": None,
    "rejected_at": None,
    "state": "current",
    "trust": 1.0,
}
RECEIPT = {
    "erased_at": LATER,
    "counts": {"conversations": 1, "messages": 3},
    "subject": SUBJECT,
    "remains": {"backups": "Backups and copies of the database hold the data until they are deleted."},
}
