"""A model provider in a process of its own, which answers at once; so its work is on nobody's account.

It prints its URL, and for each line that it is given how many requests it has answered, and how long it was
at them. With the argument `hold` it answers nobody until its input ends.
"""

import json
import logging
import sys
import threading
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.testing.providers import Hold, ProviderServer, RecordedRequest, Reply

from .texts import sentences

_ALWAYS = 2**62


class Clock:
    """A fault that is none: it adds up how long answers take."""

    def __init__(self) -> None:
        self.requests = 0
        self.seconds = 0.0

    def __call__(self, app: ASGIApp) -> ASGIApp:
        """Measure an answer."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            started = perf_counter()
            await app(scope, receive, send)
            self.seconds += perf_counter() - started
            self.requests += 1

        return answer


class Model:
    """Answers what we ask, what the inline design asks, and mem0; always with one thing that is new."""

    def __init__(self) -> None:
        self._facts: Iterator[str] = sentences(7)

    def __call__(self, request: RecordedRequest) -> Reply:
        """The answer, by the form that it is asked for in."""
        form: dict[str, Any] = (request.body or {}).get("response_format") or {}
        stage = form.get("json_schema", {}).get("name")
        # All facts have a word in common, so that something is known of the same matters.
        fact = f"{next(self._facts).replace('I', 'The user', 1)} near the garden"
        if stage == "extraction":
            return Reply.json(_memories(str(request.body["messages"][-1]["content"]), fact))
        return Reply.json(_ANSWERS[stage](fact) if stage in _ANSWERS else {"memory": [{"text": fact}]})


def _memories(prompt: str, fact: str) -> dict[str, Any]:
    """Two memories that rest on the first words of a message, and repeat them: so they are kept."""
    said = next(line for line in prompt.splitlines() if line.startswith("m1 user: "))
    quote = " ".join(said.removeprefix("m1 user: ").split()[:4])
    known = {"from": "m1", "quote": quote, "date": None, "until": None, "replaces": []}
    texts = {"event": f"{fact.lower()}: {quote}", "mind": f"{fact.lower()}, and liked it: {quote}"}
    return {"memories": [{**known, "kind": kind, "text": text} for kind, text in texts.items()]}


def _modification(fact: str) -> dict[str, Any]:
    found = {
        "type": "event",
        "text": fact,
        "evidence": ["m1"],
        "confidence": 0.9,
        "happened_on": None,
        "valid_from": None,
        "valid_to": None,
        "slot": None,
    }
    return {"summary": "One thing is new.", "candidates": [found]}


def _update(_: str) -> dict[str, Any]:
    return {"decisions": [{"candidate": "c1", "action": "add", "targets": []}]}


def _mind(fact: str) -> dict[str, Any]:
    insight = {"text": f"{fact}, and liked it", "evidence": ["m3"], "confidence": 0.5}
    return {"insights": "The user is at ease.", "confidence_score": 0.5, "entries": [insight]}


_ANSWERS = {"modification": _modification, "update": _update, "mind": _mind}


def main() -> None:
    """Serve until the input ends."""
    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())  # that it is stopped is no news
    clock, end = Clock(), threading.Event()
    with ProviderServer() as server:
        server.chat.reply_always(Model())
        server.fail_next("POST **", Hold(end) if "hold" in sys.argv else clock, times=_ALWAYS)
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            print(json.dumps({"requests": clock.requests, "seconds": clock.seconds}), flush=True)
        end.set()


if __name__ == "__main__":
    main()
