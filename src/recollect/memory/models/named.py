"""Extractors by their names, as a configuration or a command line gives them."""

from typing import Any

from ..pipeline.stages import Extractor


def extractor_named(name: str) -> Extractor:
    """The extractor of `offline`, `openai:MODEL` or `anthropic:MODEL`."""
    kind, _, model = name.partition(":")
    if name == "offline":
        from ..offline import OfflineExtractor

        return OfflineExtractor()
    if kind not in ("openai", "anthropic") or not model:
        raise ValueError("a model must be offline, openai:NAME or anthropic:NAME")
    from . import AnthropicExtractor, OpenAIExtractor

    makers: dict[str, Any] = {"openai": OpenAIExtractor, "anthropic": AnthropicExtractor}
    extractor: Extractor = makers[kind](model)
    return extractor
