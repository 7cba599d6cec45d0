"""Conversation items: pure functions that every other layer uses.

An item is a JSON object in the OpenAI Responses input format. Unknown fields and unknown types are kept
unchanged.
"""

from .codec import decode_item, decode_joined, encode_items, escape_non_ascii
from .pairs import (
    Pairs,
    find_orphans,
    group_items,
    keep_whole_groups,
    newest_whole,
    pair_calls,
    reasoning_owners,
)
from .shapes import (
    Item,
    fingerprint,
    is_call,
    is_from_model,
    is_output,
    is_reasoning,
    is_user_message,
    role_of,
    split_turns,
    text_of,
    turn_starts,
    type_of,
)
from .tails import BEGIN, END, is_start, is_tail, with_tail
from .tokens import ModelUsage, Tokenizer, estimate_text_tokens, estimate_tokens

__all__ = [
    "BEGIN",
    "END",
    "Item",
    "ModelUsage",
    "Pairs",
    "Tokenizer",
    "decode_item",
    "decode_joined",
    "encode_items",
    "escape_non_ascii",
    "estimate_text_tokens",
    "estimate_tokens",
    "find_orphans",
    "fingerprint",
    "group_items",
    "is_call",
    "is_from_model",
    "is_output",
    "is_reasoning",
    "is_start",
    "is_tail",
    "is_user_message",
    "keep_whole_groups",
    "newest_whole",
    "pair_calls",
    "reasoning_owners",
    "role_of",
    "split_turns",
    "text_of",
    "turn_starts",
    "type_of",
    "with_tail",
]
