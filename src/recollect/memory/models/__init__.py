"""Extractors that ask a model: of OpenAI, of whoever speaks its Chat Completions, and of Anthropic."""

from .anthropic import AnthropicExtractor
from .openai import OpenAIExtractor
from .prompting import PROMPT_VERSION

__all__ = ["PROMPT_VERSION", "AnthropicExtractor", "OpenAIExtractor"]
