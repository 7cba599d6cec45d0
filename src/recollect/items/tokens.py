"""Token counts: an estimate for callers without a tokenizer, and the usage that a model reports."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from .shapes import Item, role_of, text_of

# Chinese, Japanese and Korean text has about one token per character, other text one per four characters.
_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003134f]+"
)
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_ITEM = 4  # the markers around every item
_IMAGES = ("input_image", "image", "computer_screenshot")
_TOKENS_PER_IMAGE = 765  # 1024 x 1024 pixels in full detail; the bytes must not be counted as text

Tokenizer = Callable[[str], int]


def estimate_text_tokens(text: str) -> int:
    """Estimate the number of tokens of a text."""
    wide = 0 if text.isascii() else sum(map(len, _CJK.findall(text)))
    return wide + -(-(len(text) - wide) // _CHARACTERS_PER_TOKEN)


def estimate_tokens(items: Item | Sequence[Item], tokenizer: Tokenizer | None = None) -> int:
    """Estimate the number of tokens of an item or a history. A `tokenizer` counts the text if given."""
    count = tokenizer or estimate_text_tokens
    if isinstance(items, dict):
        return _item_tokens(items, count)
    return sum(_item_tokens(item, count) for item in items)


def _item_tokens(item: Item, count: Tokenizer) -> int:
    name = item.get("name")
    words = count(text_of(item)) + (count(name) if isinstance(name, str) else 0)
    return _TOKENS_PER_ITEM + words + _TOKENS_PER_IMAGE * _images_in(item)


def _images_in(item: Item) -> int:
    content = item.get("content") if role_of(item) else item.get("output")
    parts = content if isinstance(content, list) else [content]
    return sum(isinstance(part, dict) and part.get("type") in _IMAGES for part in parts)


@dataclass(frozen=True)
class ModelUsage:
    """The number of requests to a model, and their input and output tokens."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        return ModelUsage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as a JSON object."""
        return {**asdict(self), "total_tokens": self.total_tokens}
