"""The transactions of a turn: it begins, and it ends. What belongs together is written together.

The beginning writes the question of the user, its session item, its event and the running turn. The end
writes the answer, the items of the run, their events, the usage and the ended turn. A process that dies in
between leaves a running turn with its question, and nothing of the run.

Lock order: the conversation, then the session, then the turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...errors import ConflictError
from ...items import Item, encode_items, role_of
from ...memory.conversation import Message
from ...memory.database.message_items import ItemLinks
from ...sessions.advanced.scripts import BranchEnd
from ...sessions.advanced.transaction import SessionTransaction
from ...sessions.advanced.usage import RunProgress
from ...sessions.events.event import ConversationEvent, Origin, events_of
from ...sessions.events.log import EventHead, advance_head, events_before, read_head
from ...sql.scripts import MakeScript, Script, Statement
from ..errors import TurnLostError
from .database.record import TurnRecord
from .database.turns import begin_turn, change_turn
from .sessions import MIRRORED, check_owner, item_from_message

_NOBODY = Origin(None, None, None, None)


class SessionBehindError(Exception):
    """The session lacks messages of the conversation, or the event log items of the session."""


@dataclass(frozen=True)
class Beginning:
    """The beginning of a turn, as it is to be written."""

    record: TurnRecord
    append_question: MakeScript[list[Message]]
    links: ItemLinks
    must_be_level: bool = True
    """Whether to raise a `SessionBehindError`. Corrupt rows keep a session behind for ever."""

    def write(self, steps: SessionTransaction) -> "Script[Begun]":
        """Write it. Raises a `ConflictError` if the turn or the session belongs to somebody else."""
        (question,) = yield from self.append_question()
        conversation_id = self.record.conversation_id
        yield from steps.lock(make=True)
        data = yield from steps.read_data()
        check_owner(data, conversation_id)
        place = yield from steps.place()
        head = yield from read_head(conversation_id)
        missing = question.message_index - data.get(MIRRORED, 0)
        if self.must_be_level and (missing > 0 or head.last_position != place.last_id):
            raise SessionBehindError
        turn = place.last_turn
        if missing >= 0:  # else an earlier attempt has written the item
            turn += 1
            data = {**data, MIRRORED: question.message_index + 1}
            head = yield from self._add_item(steps, question, place, head, data)
        record = replace(
            self.record, question_index=question.message_index, session_turn=(place.branch, turn)
        )
        if not (yield from begin_turn(record)):
            raise ConflictError("another turn has this turn_id")
        return Begun(record, data, head)

    def _add_item(
        self,
        steps: SessionTransaction,
        question: Message,
        place: BranchEnd,
        head: EventHead,
        data: dict[str, Any],
    ) -> Script[EventHead]:
        item = item_from_message(question)
        encoded = encode_items([item])
        ids = yield from steps.append_items(encoded)
        events = events_of(self.record.conversation_id, [item], ids, _NOBODY, {})
        added = yield from advance_head(self.record.conversation_id, head, events)
        if added is None:
            raise SessionBehindError
        linked = self.links.add(self.record.tenant, {ids[0]: question.message_id})
        structure = steps.structure(place, ids, encoded)
        yield from steps.apply([*structure, *linked, steps.set_data(data), *events_before(added, events)])
        return added


class Begun(NamedTuple):
    """What the beginning of a turn has written, for its end."""

    record: TurnRecord
    data: dict[str, Any]
    """The data of the session."""
    head: EventHead


@dataclass(frozen=True)
class RunTrace:
    """What a run leaves: its items, the cost, and where the items come from."""

    items: Sequence[Item] = field(default=(), repr=False)
    encoded: list[str] = field(default_factory=list, repr=False)
    progress: RunProgress | None = None
    """`None` if the run has no usage."""
    origin: Origin = _NOBODY

    @property
    def answer(self) -> int | None:
        """The index of the item with the answer."""
        found = [number for number, item in enumerate(self.items) if role_of(item) == "assistant"]
        return found[-1] if found else None

    def events(self, conversation_id: str, positions: Sequence[int | None]) -> list[ConversationEvent]:
        """The events of the items at these positions."""
        return events_of(conversation_id, self.items, positions, self.origin, {})


@dataclass(frozen=True)
class Completion:
    """The end of a turn that has an answer, as it is to be written."""

    begun: Begun
    record: TurnRecord
    append_answer: MakeScript[list[Message]]
    links: ItemLinks
    trace: RunTrace

    def write(self, steps: SessionTransaction) -> Script[TurnRecord]:
        """Write it, and return the turn. Raises a `TurnLostError` if another process has ended the turn."""
        (answer,) = yield from self.append_answer()
        done = replace(self.record, answer_index=answer.message_index)
        yield from steps.lock(make=True)
        if not (yield from change_turn(done)):
            raise TurnLostError
        place = yield from steps.place()
        ids = yield from steps.append_items(self.trace.encoded)
        changes = steps.structure(place, ids, self.trace.encoded)
        if self.trace.answer is not None:
            changes += self.links.add(done.tenant, {ids[self.trace.answer]: answer.message_id})
        if self.begun.data[MIRRORED] == answer.message_index:  # else messages came in between
            changes.append(steps.set_data({**self.begun.data, MIRRORED: answer.message_index + 1}))
        changes += yield from _cost_and_events(steps, self.begun, self.trace, place, ids)
        yield from steps.apply(changes)
        return done


@dataclass(frozen=True)
class Failure:
    """The end of a turn that has no answer, as it is to be written. Its items are kept as events only."""

    begun: Begun
    record: TurnRecord
    links: ItemLinks
    trace: RunTrace

    def write(self, steps: SessionTransaction) -> Script[bool | None]:
        """Write it; `False` if the turn ended elsewhere, `None` if the conversation was erased."""
        if (yield from self.links.share_conversation()) is None:
            return None
        yield from steps.lock()
        is_ours = yield from change_turn(self.record)
        if is_ours:
            place = yield from steps.place()
            nowhere = [None] * len(self.trace.items)
            yield from steps.apply(
                (yield from _cost_and_events(steps, self.begun, self.trace, place, nowhere))
            )
        return is_ours


def _cost_and_events(
    steps: SessionTransaction,
    begun: Begun,
    trace: RunTrace,
    place: BranchEnd,
    positions: Sequence[int | None],
) -> Script[list[Statement]]:
    """The changes that add the cost and the events of a run."""
    changes: list[Statement] = []
    if trace.progress is not None and place.last_id:
        changes += yield from steps.cost(place, trace.progress)
    conversation_id = begun.record.conversation_id
    events = trace.events(conversation_id, positions)
    if not events:
        return changes
    head = yield from advance_head(conversation_id, begun.head, events)
    while head is None:  # another writer has changed the log meanwhile
        now = yield from read_head(conversation_id)
        head = yield from advance_head(conversation_id, now, events)
    return [*changes, *events_before(head, events)]
