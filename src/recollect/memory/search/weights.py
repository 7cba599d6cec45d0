"""How much each part of a ranking counts."""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Weights:
    """The weight of each part; 0 switches it off.

    They were chosen by leaving out one conversation of a collection at a time: what was best for the
    others was measured on the one left out. None is finer than what made a difference there. `phrase` and
    `recency`, which hardly anybody asks for there, were not measured but judged.
    """

    text: float = 0.4
    """Words of the question, the rarer the more; as much as `text` and `vector` where there is no vector."""
    vector: float = 0.6
    """Nearness in meaning."""
    before: float = 0.45
    """Of the score of the turn before: often the question that this one answers."""
    after: float = 0.35
    """Of the score of the turn after; of the two neighbours, the one that gives more counts."""
    session: float = 0.4
    """Of the best score in the same session."""
    topic: float = 0.2
    """Words of the question anywhere in the same session."""
    speaker: float = 0.45
    """Said by whom the question names."""
    date: float = 0.6
    """Said at the time that the question names, or soon after."""
    time: float = 0.25
    """Tells a time, where the question asks for one."""
    names: float = 0.2
    """Tells names, where the question asks for one; less where it does not."""
    substance: float = 0.15
    """Long enough to say something."""
    question: float = 0.3
    """Taken away from what is itself a question."""
    phrase: float = 0.3
    """Has what the question quotes, word for word."""
    recency: float = 0.1
    """Newer, where the question asks for the newest."""

    def without(self, *names: str) -> "Weights":
        """The same with these parts switched off."""
        return replace(self, **dict.fromkeys(names, 0.0))


PARTS = tuple(part.name for part in fields(Weights))
