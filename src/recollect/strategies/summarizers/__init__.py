"""Summarizers: with OpenAI-compatible and Anthropic models, and one that needs no model.

A summarizer is any async callable that takes a `SummaryRequest` and returns a text or a `Summary`.
"""

from .extractive import ExtractiveSummarizer
from .model import AnthropicSummarizer, OpenAISummarizer
from .protocol import Summarizer, Summary, SummaryRequest

__all__ = [
    "AnthropicSummarizer",
    "ExtractiveSummarizer",
    "OpenAISummarizer",
    "Summarizer",
    "Summary",
    "SummaryRequest",
]
