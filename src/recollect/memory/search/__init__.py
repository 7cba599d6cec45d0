"""Search: finds the turns or entries that answer a question, and explains their scores.

Pure functions over a corpus in memory: `understand` parses a question, `rank` ranks the documents.
"""

from .corpus import Corpus
from .documents import Document
from .lookup import SearchResult, find
from .query import Query, understand, without_names
from .ranking import Hit, Ranking, Weights, rank

__all__ = [
    "Corpus",
    "Document",
    "Hit",
    "Query",
    "Ranking",
    "SearchResult",
    "Weights",
    "find",
    "rank",
    "understand",
    "without_names",
]
