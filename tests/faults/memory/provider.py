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
_BOUGHT = re.compile(r"^(m\d+) user: I like (" + WORD.pattern + ")", re.MULTILINE)

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
    bought = _BOUGHT.findall(request.body["messages"][-1]["content"])
    return Reply.json({"memories": [_memory(message, word) for message, word in bought]})


def _memory(message: str, word: str) -> dict[str, Any]:
    said = {"from": message, "quote": f"I like {word}.", "kind": "mind"}
    return {**said, "text": f"The user likes {word}.", "date": None, "until": None, "replaces": []}


def new_provider() -> ProviderServer:
    """A provider that answers so."""
    server = ProviderServer()
    mend(server)
    return server


def mend(server: ProviderServer) -> None:
    """Have a provider fail no more, whatever it was told."""
    server.reset()
    server.chat.reply_always(answer)
