"""Extractors that ask a model: of OpenAI, of any endpoint with its Chat Completions API, and of Anthropic."""

from .anthropic import AnthropicExtractor
from .extractor import build_extractor
from .openai import OpenAIExtractor
from .stage_prompts import PROMPT_VERSION

__all__ = ["PROMPT_VERSION", "AnthropicExtractor", "OpenAIExtractor", "build_extractor"]
