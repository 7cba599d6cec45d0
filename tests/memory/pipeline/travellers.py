"""A model that learns where travellers live, spoken to over HTTP."""

import re
from typing import Any

from recollect.memory.extraction import OpenAIExtractor
from recollect.testing.providers import ProviderServer, RecordedRequest, Reply

PATH = "POST /v1/chat/completions"
HOME = "The traveller lives in Paris"
MOOD = "The traveller seems happy"


def saying(number: int) -> str:
    return f"I am traveller {number} and now I live in Lisbon"


def home(number: int) -> str:
    return f"Traveller {number} lives in Lisbon"


def number_of(request: RecordedRequest) -> int:
    """Which traveller the request is about."""
    found = re.search(r"I am traveller (\d+)", request.body["messages"][-1]["content"])
    assert found is not None
    return int(found[1])


def answer(request: RecordedRequest) -> Reply:
    """What the model says: the traveller has moved from the one home that is known."""
    moved: dict[str, Any] = {
        "from": "m1",
        "quote": "now I live in Lisbon",
        "kind": "profile",
        "text": home(number_of(request)),
        "replaces": ["e1"],
    }
    happy = {"from": "m1", "quote": "I am traveller", "kind": "mind", "text": MOOD, "replaces": []}
    return Reply.json({"memories": [moved, happy]})


def extractor_of(server: ProviderServer, **options: Any) -> OpenAIExtractor:
    server.chat.reply_always(answer)
    return OpenAIExtractor(base_url=server.base_url, api_key=server.api_key, **options)
