"""What is worth knowing in a conversation, found by rule in English and Chinese: no model, no download."""

from .extractor import OfflineExtractor

__all__ = ["OfflineExtractor"]
