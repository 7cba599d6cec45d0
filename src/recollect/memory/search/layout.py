"""Who stands beside whom."""

from dataclasses import dataclass

import numpy as np

from .documents import Floats, Numbers


@dataclass(frozen=True)
class Layout:
    """The sessions of a corpus, and the neighbours in them."""

    order: Numbers
    """The rows, session by session, and by position within."""
    starts: Numbers
    """Where in the order each session starts."""
    segment: Numbers
    """Which of the sessions each row is in."""
    before: Numbers
    """The row before, in the same session; -1 where there is none."""
    after: Numbers
    """The row after."""

    def best_of_session(self, scores: Floats) -> Floats:
        """For each session its best score, by the place of the session."""
        best: Floats = np.maximum.reduceat(scores[self.order], self.starts)
        return best


def lay_out(session: Numbers, position: Numbers) -> Layout:
    """The layout of rows, by the number of their session and their position in it."""
    order = np.lexsort((position, session))
    ordered = session[order]
    is_start = np.ones(len(order), np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    segment = np.empty(len(order), np.int64)
    segment[order] = np.cumsum(is_start) - 1
    before, after = np.full(len(order), -1, np.int64), np.full(len(order), -1, np.int64)
    follows = ~is_start[1:]
    before[order[1:][follows]] = order[:-1][follows]
    after[order[:-1][follows]] = order[1:][follows]
    return Layout(order, np.flatnonzero(is_start), segment, before, after)


def taken_from(scores: Floats, rows: Numbers) -> Floats:
    """The scores of these rows, and 0 where there is no row."""
    return np.where(rows >= 0, scores[rows], 0.0)
