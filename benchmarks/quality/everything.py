"""The extractor to compare with: it keeps every message of the user as it is."""

from collections.abc import Sequence

from recollect.memory.entry import Entry
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update


class KeepsEverything:
    """Covers all evidence, and is as large as what was said."""

    model = "every message"

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """A candidate for each message."""
        said = [message for message in excerpt.messages if message.role == "user"]
        return Answer(
            Modification("", tuple(Candidate("event", each.content, (each.message_id,)) for each in said))
        )

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],  # noqa: ARG002
        known: Sequence[Entry],  # noqa: ARG002
    ) -> Answer[Update]:
        """All are added."""
        return Answer(Update(()))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        """Nothing more."""
        return Answer(Mind("", None, ()))

    async def aclose(self) -> None:
        """Nothing is held."""
