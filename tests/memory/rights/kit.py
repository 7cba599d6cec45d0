"""Stores for these tests, and an extractor that goes by simple rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import UnusableAnswerError
from recollect.memory.conversation import Message
from recollect.memory.entry import Entry
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import Answer, Candidate, Decision, Excerpt, Mind, Modification, Update
from recollect.memory.store import MemoryStore as Store

AGENT = "desk"


class Rules:
    """Learns what messages say in the form `slot: statement`, one for each line.

    In one slot but one statement holds at a time. A line that ends with `(again)` says what is known of its
    slot in other words, `feeling` is of the mind, and `garbage` is what cannot be answered.
    """

    model = "rules"

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        found = tuple(each for message in excerpt.messages for each in _candidates(message))
        told = "; ".join(candidate.text for candidate in found)
        for message in excerpt.messages:
            if message.content.startswith("garbage"):
                raise UnusableAnswerError("no answer", raw_response=f"what is {message.content}?")
        facts = tuple(candidate for candidate in found if candidate.content_type == "profile")
        return Answer(Modification(told, facts), raw_response=f"found {told}")

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        decisions = [_decide(place, each, known) for place, each in enumerate(candidates)]
        told = "; ".join(candidate.text for candidate in candidates)
        return Answer(Update(tuple(decisions)), raw_response=f"{excerpt.user_id} said {told}")

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        found = [each for message in excerpt.messages for each in _candidates(message)]
        feelings = tuple(each for each in found if each.content_type == "mind")
        told = "; ".join(entry.text for entry in known)
        return Answer(Mind(f"thinks of {told}", 0.5, feelings), raw_response=f"minds {told}")

    async def aclose(self) -> None:
        return


def _candidates(message: Message) -> list[Candidate]:
    lines = [line.partition(": ") for line in message.content.splitlines()]
    return [
        Candidate(
            "mind" if slot == "feeling" else "profile",
            statement,
            (message.message_id,),
            slot=slot,
            data={"slot": slot, "said": statement},
        )
        for slot, colon, statement in lines
        if colon and message.role == "user"
    ]


def _decide(place: int, candidate: Candidate, known: Sequence[Entry]) -> Decision:
    same = [entry.content_id for entry in known if entry.data.get("slot") == candidate.slot]
    if not same:
        return Decision(place, "add")
    again = candidate.text.endswith("(again)")
    return Decision(place, "none" if again else "supersede", tuple(same[:1]))


@dataclass(frozen=True)
class Somewhere:
    """A place that can be opened again and again; one in memory is another each time."""

    url: str
    create_tables: bool = False

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgresql")

    def open(self, *, workers: int = 0, tenant: str = "default", embeds: bool = False) -> Store:
        """A store here; with no workers, `learn` does what is due."""
        return Store(
            self.url,
            extractor=Rules(),
            embedder="local" if embeds else None,
            workers=workers,
            options=RunOptions(attempts=1),
            tenant=tenant,
            create_tables=self.create_tables,
        )


def runner_of(store: Store) -> Runner:
    """Does runs in the test itself, one after another."""
    return Runner(store._database, Rules(), RunOptions(attempts=1))


async def learn(store: Store) -> None:
    """Do all that is due."""
    runner = runner_of(store)
    while (task := await runner.claim("learning")) is not None:
        await runner.execute(task)


def said(*texts: str, prefix: str = "m", role: str = "user") -> list[dict[str, Any]]:
    """Messages with ids of their own."""
    return [
        {"role": role, "content": text, "message_id": f"{prefix}{place}"} for place, text in enumerate(texts)
    ]


async def tell(store: Store, conversation_id: str, *texts: str, user: str = "ann") -> None:
    """Record a conversation of a user, and learn from it."""
    await store.record_conversation(
        AGENT, user, said(*texts), conversation_id=conversation_id, session_id=f"session of {conversation_id}"
    )
    await learn(store)


async def known(store: Store, user: str = "ann") -> list[str]:
    """What is told of a user."""
    return [entry.text for entry in await store.list_entries(AGENT, user)]
