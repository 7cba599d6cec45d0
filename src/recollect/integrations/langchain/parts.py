"""Parts of contents: blocks of LangChain as parts of items, and back. Pure functions.

A block that LangChain and our items name differently is converted. Any other block stays as it is. `odd` has
the numbers of parts that would be converted back wrongly: a plain text, or a block that looks converted.
"""

from typing import Any, NamedTuple, TypeAlias

Content: TypeAlias = str | list[Any]

_TEXT_TYPES = ("input_text", "output_text")


class Converted(NamedTuple):
    """The content of an item, and what the way back needs to know."""

    content: Content
    odd: dict[str, str]
    """Numbers of parts, as texts, that are `plain` texts or stay `as_is`."""


def to_parts(content: Content, text_type: str) -> Converted:
    """The content of a message as the content of an item."""
    if isinstance(content, str):
        return Converted(content, {})
    parts, odd = [], {}
    for number, block in enumerate(content):
        part = _to_part(block, text_type)
        if isinstance(block, str):
            odd[str(number)] = "plain"
        elif part is block and to_block(part) != block:
            odd[str(number)] = "as_is"
        parts.append(part)
    return Converted(parts, odd)


def _to_part(block: Any, text_type: str) -> Any:
    if isinstance(block, str):
        return {"type": text_type, "text": block}
    if _has_exactly(block, "text", "text") and isinstance(block["text"], str):
        return {"type": text_type, "text": block["text"]}
    if _has_exactly(block, "image_url", "image_url") and _is_image(block["image_url"]):
        image = block["image_url"]
        return {"type": "input_image", "image_url": image["url"]} | (
            {"detail": image["detail"]} if "detail" in image else {}
        )
    return block


def _is_image(image: Any) -> bool:
    return isinstance(image, dict) and "url" in image and set(image) <= {"url", "detail"}


def _has_exactly(block: Any, kind: str, field: str) -> bool:
    return isinstance(block, dict) and set(block) == {"type", field} and block["type"] == kind


def to_blocks(content: Any, odd: dict[str, str]) -> Any:
    """The content of an item as the content of a message."""
    if not isinstance(content, list):
        return content
    return [_back(part, odd.get(str(number))) for number, part in enumerate(content)]


def _back(part: Any, how: str | None) -> Any:
    if how == "plain":
        return part["text"]
    return part if how == "as_is" else to_block(part)


def to_block(part: Any) -> Any:
    """A part of an item as a block."""
    if not isinstance(part, dict):
        return part
    if part.get("type") in _TEXT_TYPES and set(part) == {"type", "text"}:
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "input_image" and {"type", "image_url"} <= set(part) <= {
        "type",
        "image_url",
        "detail",
    }:
        image = {"url": part["image_url"]} | ({"detail": part["detail"]} if "detail" in part else {})
        return {"type": "image_url", "image_url": image}
    return part
