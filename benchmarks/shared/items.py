"""What is stored: realistic items."""

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

Item = dict[str, Any]
SESSION = "conversation-1"


def make_turn(number: int) -> list[Item]:
    """A turn with a tool call, as the SDK's Runner stores it: five items of 200 to 250 bytes each."""
    call_id = f"call_{number:024d}"
    return [
        {
            "role": "user",
            "content": f"Where is my order {number}? It was promised for Tuesday, but the tracking page has"
            " not moved since Friday, and I need the parcel before I leave on Thursday morning. Please look.",
        },
        {
            "id": f"rs_{number:024d}",
            "summary": [
                {
                    "text": "The user asks about a late order and has a deadline. Look the order up first.",
                    "type": "summary_text",
                }
            ],
            "type": "reasoning",
            "status": "completed",
        },
        {
            "arguments": f'{{"order_id": {number}, "include": ["shipment", "events", "estimated_delivery"]}}',
            "call_id": call_id,
            "name": "look_up_order",
            "type": "function_call",
            "id": f"fc_{number:024d}",
            "status": "completed",
        },
        {
            "call_id": call_id,
            "output": f'{{"order_id": {number}, "status": "in transit", "carrier": "DHL", "last_event":'
            ' "left the sorting centre in Leipzig", "estimated_delivery": "2025-11-19"}',
            "type": "function_call_output",
        },
        {
            "id": f"msg_{number:024d}",
            "content": [
                {
                    "annotations": [],
                    "text": f"Order {number} left Leipzig today and should arrive on Wednesday.",
                    "type": "output_text",
                    "logprobs": [],
                }
            ],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
    ]


def make_items(number: int) -> list[Item]:
    """So many items of a conversation."""
    return list(islice(conversation(), number))


def conversation() -> Iterator[Item]:
    """A conversation without end."""
    for turn in count(1):
        yield from make_turn(turn)
