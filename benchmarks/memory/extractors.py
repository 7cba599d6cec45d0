"""Extractors that take no time: what is measured is the pipeline around them."""

from collections.abc import Sequence

from recollect.memory.entry import Entry
from recollect.memory.pipeline.stages import Answer, Candidate, Decision, Excerpt, Mind, Modification, Update

from .texts import told


class InstantExtractor:
    """Answers at once, with one event and one insight for each conversation."""

    model = "instant"

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """The fact that the first message begins with."""
        first = excerpt.messages[0]
        found = Candidate("event", told(first.content), (first.message_id,))
        return Answer(Modification("One thing is new.", (found,)), "One thing is new.")

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],  # noqa: ARG002
        known: Sequence[Entry],  # noqa: ARG002
    ) -> Answer[Update]:
        """Everything is added."""
        return Answer(Update(()), "add")

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        """What the second fact says about the user."""
        said = excerpt.messages[2]
        insight = Candidate("mind", told(said.content), (said.message_id,), 0.5)
        return Answer(Mind("The user is at ease.", 0.5, (insight,)), "The user is at ease.")

    async def aclose(self) -> None:
        """Nothing is held."""


class ChangingExtractor(InstantExtractor):
    """Answers at once: a candidate for each fact, of which the second takes the place of what it changes.

    The first is known word for word, and the rest is new.
    """

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """Each message of the user begins with a fact."""
        found = tuple(
            Candidate("event", told(message.content), (message.message_id,))
            for message in excerpt.messages
            if message.role == "user"
        )
        return Answer(Modification("Some things are new.", found), "Some things are new.")

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],
        known: Sequence[Entry],
    ) -> Answer[Update]:
        """The second candidate ends in another word than what it supersedes."""
        beginning = candidates[1].text.rpartition(" ")[0]
        changed = tuple(entry.content_id for entry in known if entry.text.startswith(beginning))
        return Answer(Update((Decision(1, "supersede", changed),)), "supersede")

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        """Nothing more."""
        return Answer(Mind("The user is at ease.", 0.5, ()), "The user is at ease.")
