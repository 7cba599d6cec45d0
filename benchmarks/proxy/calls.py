"""Calls of the Chat Completions API as bytes: conversations whose whole history is sent with each turn."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from ..service.client import encode
from ..service.provider_process import ANSWER, API_KEY
from ..service.requests import questions

USERS = 20
DIRECT, PROXIED = "/v1/chat/completions", "/proxy/openai/v1/chat/completions"
_KEY = {"Authorization": f"Bearer {API_KEY}"}
_TURNS = 5


def user_name(number: int) -> str:
    """One of the users."""
    return f"user-{number % USERS}"


def calls(path: str, seed: int, *, named: bool, stream: bool) -> Iterator[bytes]:
    """Calls without end, of users in turn, none like another."""
    asked = questions(seed)
    talks: list[list[dict[str, str]]] = [[] for _ in range(USERS)]
    for number in count():
        talk = talks[number % USERS]
        if len(talk) >= 2 * _TURNS:
            talk.clear()
        talk.append(_message("user", f"{next(asked)}?"))
        body: dict[str, Any] = {"model": "m", "stream": stream, "messages": [_SYSTEM, *talk]}
        if named:
            body["user"] = user_name(number)
        talk.append(_message("assistant", ANSWER))
        yield encode("POST", path, body, _KEY)


_SYSTEM = {"role": "system", "content": "You are a helpful assistant. " * 20}


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}
