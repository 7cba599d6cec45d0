"""Small conversations of our own, to be searched."""

from datetime import UTC, datetime
from typing import Any

from recollect.memory.search import Corpus, Document, Hit, rank, understand

SPRING = datetime(2023, 5, 7, 10, tzinfo=UTC)
AUTUMN = datetime(2023, 10, 2, 18, tzinfo=UTC)

LINES = (
    ("spring", "Ada", "I moved to Lisbon in the spring and I love the trams.", SPRING),
    ("spring", "Ben", "How nice! Which instrument do you play these days?", SPRING),
    ("spring", "Ada", "Mostly cello, twice a week with my neighbour.", SPRING),
    ("spring", "Ben", "I adopted a greyhound called Biscuit from the shelter.", SPRING),
    ("autumn", "Ada", "My sister opened a bakery near the harbour last month.", AUTUMN),
    ("autumn", "Ben", "What does she bake there?", AUTUMN),
    ("autumn", "Ada", "Sourdough and almond cakes, they are always sold out.", AUTUMN),
    ("autumn", "Ben", "My greyhound ate a whole loaf yesterday, she was very proud.", AUTUMN),
)


def turns() -> list[Document]:
    """The lines as documents, with their place as id."""
    return [
        Document(str(place), text, speaker=speaker, session=session, position=place, time=time)
        for place, (session, speaker, text, time) in enumerate(LINES)
    ]


def ask(question: str, corpus: Corpus | None = None, **options: Any) -> list[Hit]:
    """What is found by words alone."""
    corpus = Corpus(turns()) if corpus is None else corpus
    return list(rank(understand(question, corpus.speakers), corpus, **options).hits)


def first(question: str, corpus: Corpus | None = None, **options: Any) -> str:
    """The text that is found first."""
    return LINES[int(ask(question, corpus, **options)[0].id)][2]
