"""What is searched: a turn of a conversation, or an entry of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Document:
    """One thing that can be found."""

    id: str
    text: str = field(repr=False)
    speaker: str | None = None
    """Who said it, or whom it is about: a name or a role."""
    session: str | None = None
    """What it was said in; its neighbours are those of the same session."""
    position: int = 0
    """Its place in the session."""
    time: datetime | None = None
    """When it was said, or when it happened."""
    vector: Vector | Sequence[float] | None = field(default=None, repr=False, compare=False)
    kind: str = "turn"
