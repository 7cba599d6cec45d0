"""Extractors that ask a model of OpenAI, of any endpoint with its Chat Completions API, or of Anthropic."""

from .extractor import AnthropicExtractor, OpenAIExtractor, build_extractor
from .prompt import PROMPT_VERSION

__all__ = ["PROMPT_VERSION", "AnthropicExtractor", "OpenAIExtractor", "build_extractor"]
