"""A model that learns what users have bought, spoken to over HTTP, and the ways in which it can fail."""

import re
import threading
from typing import Any

from recollect.testing.providers import (
    CloseBefore,
    Fault,
    Garble,
    Hold,
    Overloaded,
    ProviderServer,
    RecordedRequest,
    Refuse,
    Reply,
    Truncate,
)

from .words import WORD

CHAT = "POST /v1/chat/completions"
EMBEDDINGS = "POST /v1/embeddings"
_NEVER = threading.Event()
_BOUGHT = re.compile(r'"id":"(m\d+)","role":"user"[^\n]*"text":"I bought a (' + WORD.pattern + ')"')
_CANDIDATE = re.compile(r'"id":"(c\d+)"')

FAULTS: dict[str, Fault] = {
    "refused": Refuse(500),
    "limited": Refuse(429, retry_after=0.05),
    "overloaded": Overloaded(),
    "unreachable": CloseBefore(),
    "cut off": Truncate(40),
    "garbage": Garble(),
    "nothing": Garble(b""),
    "hanging": Hold(_NEVER),
}


def answer(request: RecordedRequest) -> Reply:
    """What the model says: each thing that was bought is an event."""
    text = request.body["messages"][-1]["content"]
    stage = request.body["response_format"]["json_schema"]["name"]
    values: dict[str, Any] = {
        "modification": lambda: {"summary": "things", "candidates": _candidates(text)},
        "update": lambda: {"decisions": [_added(name) for name in _CANDIDATE.findall(text)]},
        "mind": lambda: {"insights": "none", "confidence_score": 0.5, "entries": []},
    }
    return Reply.json(values[stage]())


def _candidates(text: str) -> list[dict[str, Any]]:
    return [
        {"type": "event", "text": f"The user bought a {word}", "evidence": [message], "confidence": 1}
        for message, word in _BOUGHT.findall(text)
    ]


def _added(candidate: str) -> dict[str, Any]:
    return {"candidate": candidate, "action": "add", "targets": []}


def new_provider() -> ProviderServer:
    """A provider that answers so."""
    server = ProviderServer()
    mend(server)
    return server


def mend(server: ProviderServer) -> None:
    """Have a provider fail no more, whatever it was told."""
    server.reset()
    server.chat.reply_always(answer)
