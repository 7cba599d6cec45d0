"""Search: finds the turns or entries that answer a question, and explains their scores.

Pure functions over a corpus in memory: `understand` parses a question, `rank` and `rank_sessions` rank.
"""

from .corpus import Corpus
from .documents import Document
from .lookup import SearchResult, find
from .query import Query, understand, without_names
from .ranking import Hit, SessionHit, Weights, rank, rank_sessions

__all__ = [
    "Corpus",
    "Document",
    "Hit",
    "Query",
    "SearchResult",
    "SessionHit",
    "Weights",
    "find",
    "rank",
    "rank_sessions",
    "understand",
    "without_names",
]
