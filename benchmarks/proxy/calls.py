"""Calls of the Chat Completions API as bytes: a conversation of some turns and a new question of a user."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from ..memory.texts import sentences
from ..service.client import encode
from ..service.provider_process import API_KEY
from ..service.requests import questions

USERS = 20
DIRECT, PROXIED = "/v1/chat/completions", "/proxy/openai/v1/chat/completions"
_KEY = {"Authorization": f"Bearer {API_KEY}"}
_TURNS = 3


def user_name(number: int) -> str:
    """One of the users."""
    return f"user-{number % USERS}"


def calls(path: str, seed: int, *, named: bool, stream: bool) -> Iterator[bytes]:
    """Calls without end, of users in turn, none like another."""
    facts, asked = sentences(seed), questions(seed)
    for number in count():
        body: dict[str, Any] = {"model": "m", "stream": stream, "messages": [_SYSTEM]}
        for _ in range(_TURNS):
            body["messages"] += [_message("user", next(facts)), _message("assistant", "I see.")]
        body["messages"].append(_message("user", f"{next(asked)}, number {seed}-{number}?"))
        if named:
            body["user"] = user_name(number)
        yield encode("POST", path, body, _KEY)


_SYSTEM = {"role": "system", "content": "You are a helpful assistant. " * 20}


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}
