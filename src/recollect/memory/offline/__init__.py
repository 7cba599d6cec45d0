"""An extractor that follows rules, for English and Chinese: no model, no download."""

from .extractor import OfflineExtractor

__all__ = ["OfflineExtractor"]
