"""Search: the turn or the fact that holds the answer, and why it was found.

Pure functions over a corpus in memory: `understand` reads a question, `rank` and `rank_sessions` answer it.
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
