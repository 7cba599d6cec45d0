"""Requests as bytes, made before the clock starts; what is said is that of the suite `memory`."""

from collections.abc import Iterator
from itertools import count, islice
from typing import Any
from urllib.parse import urlencode

from ..memory.texts import PAIRS, conversation, sentences
from .client import encode

AGENT = "assistant"
_QUESTION_WORDS = slice(2, 7)


def bodies(seed: int, users: int) -> Iterator[dict[str, Any]]:
    """Conversations of ten messages without end, of users in turn."""
    facts = sentences(seed)
    for number in count():
        said = conversation(list(islice(facts, PAIRS)))
        yield {"agent_id": AGENT, "user_id": f"user-{seed}-{number % users}", "messages": said}


def search(user: str, query: str) -> bytes:
    """`POST /v1/memories/search`."""
    return encode(
        "POST", "/v1/memories/search", {"agent_id": AGENT, "user_id": user, "query": query, "limit": 10}
    )


def questions(seed: int) -> Iterator[str]:
    """Some words of what somebody may have told, without end."""
    for fact in sentences(seed):
        yield " ".join(fact.split()[_QUESTION_WORDS])


def chat(user: str, message: str, path: str = "/v1/chat/stream") -> bytes:
    """`POST /v1/chat` or `/v1/chat/stream`, in a new conversation."""
    return encode("POST", path, {"user_id": user, "message": message})


def listing(user: str) -> bytes:
    """`GET /v1/conversations` of a user."""
    return encode("GET", f"/v1/conversations?{urlencode({'agent_id': AGENT, 'user_id': user})}")


def export(user: str) -> bytes:
    """`GET /v1/users/export`."""
    return encode("GET", f"/v1/users/export?{urlencode({'user_id': user})}")


def erasure(user: str) -> bytes:
    """`DELETE /v1/users`."""
    return encode("DELETE", f"/v1/users?{urlencode({'user_id': user})}")
