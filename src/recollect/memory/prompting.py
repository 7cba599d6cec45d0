"""What memory adds to a prompt, at two places: a page in the stable part, and a tail after the question.

Providers charge a tenth for tokens whose prefix they have seen. The page about the user follows the
application's own instructions and is fixed for a conversation. The tail has what has changed since then, and
what `recall` finds for the question and the page does not say. Nothing that is cached comes after it. Each
framework says only where it puts the two.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args
from weakref import WeakKeyDictionary, WeakSet

from ..errors import InvalidValueError, RecollectError
from ..strategies.summaries import ConversationSummary
from ..strategies.summaries.injection import DEFAULT_TOKEN_BUDGET, MemoryBlock, render_memory
from .block import Block, Line
from .conversation import check_owner
from .entry import Entry
from .hits import Recalled
from .page import DEFAULT_BUDGET, PageLine, UserPage, check_budget
from .texts.terms import terms
from .times import now

logger = logging.getLogger(__name__)

Refresh: TypeAlias = Literal["turn", "conversation"]
T = TypeVar("T")

CACHE_SECONDS = 300.0
"""For how long a provider keeps a prefix that nobody sends. After that, a new page costs nothing."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_CONVERSATIONS = 2000
_MOST_REMOVED = 10  # entries that are looked up, to say that they no longer hold
_AS_MUCH = 0.6  # of the terms of a message, for a line of the page that says as much


class PromptStore(Protocol):
    """What is needed of a store: `MemoryStore` and `RemoteMemoryStore` have it."""

    @property
    def tenant(self) -> str:
        """The tenant that owns the memory."""
        ...

    def page(
        self, agent_id: str, user_id: str, *, budget: int = ..., as_of: datetime | str | None = ...
    ) -> Awaitable[UserPage]:
        """The page about a user, now or as of a time."""
        ...

    def recall(self, query: str, agent_id: str, user_id: str, *, budget: int = ...) -> Awaitable[Recalled]:
        """What is known about a question."""
        ...

    def get_entry(self, content_id: str) -> Awaitable[Entry | None]:
        """An entry by its id."""
        ...


@dataclass(frozen=True)
class PromptOptions:
    """How much memory adds to a prompt, and when the page is written anew."""

    page_budget: int = DEFAULT_BUDGET
    """The most tokens of the page. With 0 there is none, and all goes into the tail."""
    tail_budget: int = DEFAULT_TOKEN_BUDGET
    refresh: Refresh = "conversation"
    """When the page is written anew: at each turn, or when a conversation starts or was idle."""
    idle_seconds: float = CACHE_SECONDS

    def __post_init__(self) -> None:
        check_budget(self.page_budget)
        render_memory(token_budget=self.tail_budget)
        if self.refresh not in get_args(Refresh):
            raise InvalidValueError(f"refresh must be one of {', '.join(get_args(Refresh))}")
        if not self.idle_seconds >= 0:
            raise InvalidValueError(f"idle_seconds must be 0 or more, not {self.idle_seconds}")


@dataclass(frozen=True)
class PromptOwner:
    """Whose memory it is, and in which conversation."""

    store: PromptStore
    agent_id: str
    user_id: str
    conversation: str | None = None
    """The id of the conversation. Without one, the page is written anew at each turn."""


class PageMark(NamedTuple):
    """Which page a conversation has. A door that stores it needs no memory of its own to go on."""

    version: str
    fixed_at: datetime
    used_at: datetime


@dataclass(frozen=True)
class FixedPage:
    """The page of a conversation, and what has changed since it was fixed."""

    page: UserPage
    fixed_at: datetime
    added: tuple[PageLine, ...] = ()
    removed: tuple[PageLine, ...] = ()
    """Lines that no longer hold."""

    @property
    def changes(self) -> tuple[str, ...]:
        """What has changed, for the tail. New standing instructions are among its wishes."""
        new = [line.text for line in self.added if line.section != "instructions"]
        return (*new, *(f"no longer: {line.text}" for line in self.removed))


@dataclass(frozen=True)
class PromptParts:
    """What a turn gets from memory."""

    page: str = field(default="", repr=False)
    """For the stable part of the prompt, after the own instructions of an application; empty without any."""
    tail: str = field(default="", repr=False)
    """For the place after the newest message of the user. Empty if there is nothing to add."""
    page_version: str = ""
    fixed_at: datetime | None = None
    lines: tuple[Line, ...] = field(default=(), repr=False)
    """The lines of the tail, with their scores and reasons."""
    changed: tuple[str, ...] = ()
    """The ids of the entries that have changed since the page was fixed."""
    memories_used: int = 0
    """How many entries and messages both show."""
    seconds: float = 0.0
    """How long it took."""

    def after(self, instructions: str | None) -> str:
        """The page after the instructions of an application."""
        return "\n\n".join(filter(None, (instructions, self.page)))


class _Pin(NamedTuple):
    """When the page of a conversation was fixed."""

    at: datetime
    version: str
    text: str
    used: datetime
    turn: tuple[str, PromptParts] | None = None
    """The newest turn, whose further calls of the model get the same."""


_alive: "WeakSet[PromptMemory]" = WeakSet()


def forget_prompts(tenant: str, user_id: str) -> None:
    """Drop what the prompts of this process keep of a user, after an erasure."""
    for prompts in list(_alive):
        prompts.forget(tenant, user_id)


class PromptMemory:
    """Composes the page and the tail of each turn, for any number of users and conversations.

    It knows in memory when the page of a conversation was fixed. After a restart it is fixed anew.
    """

    def __init__(self) -> None:
        self._pins: OrderedDict[tuple[str | None, ...], _Pin] = OrderedDict()
        _alive.add(self)

    def forget(self, tenant: str, user_id: str) -> None:
        """Drop what is kept of a user."""
        for key in list(self._pins):
            if key[0] == tenant and key[2] == user_id:
                del self._pins[key]

    async def compose(
        self,
        owner: PromptOwner,
        question: str,
        options: PromptOptions,
        *,
        is_start: bool = False,
        turn: str | None = None,
        patience: float | None = None,
        summary: ConversationSummary | None = None,
        mark: PageMark | None = None,
        seen: Collection[str] = (),
        is_seen: Callable[[Line], bool] = lambda _: False,
    ) -> PromptParts:
        """The page and the tail for a question.

        `is_start` says that the conversation starts. A `mark` says which page it has, if another process may
        have fixed it. A `turn` that is named again gets the same parts, whatever has become known since. If
        memory fails or takes longer than `patience` seconds, the tail is empty, and the page is the one that
        was sent last, unless that was too long ago. Left out are messages whose texts are `seen`, and lines
        of which `is_seen` says so: the model has them anyway.
        """
        known = None if is_start or turn is None else self.parts_of_turn(owner, turn)
        if known is not None:
            return known
        started = monotonic()
        fixed, found = await asyncio.gather(
            _in_time(
                "reading the page", self.fix_page(owner, options, is_start=is_start, mark=mark), patience
            ),
            _in_time("recalling", recall(owner, question, options), patience),
        )
        parts = self.parts_of(owner, fixed, found, options, summary=summary, seen=seen, is_seen=is_seen)
        parts = replace(parts, seconds=monotonic() - started)
        if turn is not None:
            self.note_turn(owner, turn, parts)
        return parts

    def has_page(self, owner: PromptOwner, options: PromptOptions) -> bool:
        """Whether it is known here which page a conversation has, so that no `mark` needs to be read."""
        pin = self._pins.get(_key_of(owner))
        return pin is not None and not _is_over(pin, now(), options)

    def parts_of_turn(self, owner: PromptOwner, turn: str) -> PromptParts | None:
        """What a turn got, if it is the newest one of its conversation."""
        pin = self._pins.get(_key_of(owner))
        return pin.turn[1] if pin is not None and pin.turn is not None and pin.turn[0] == turn else None

    def note_turn(self, owner: PromptOwner, turn: str, parts: PromptParts) -> None:
        """Note what a turn got, for its further calls of the model."""
        pin = self._pins.get(_key_of(owner)) or _Pin(_LONG_AGO, "", "", _LONG_AGO)
        self._keep(_key_of(owner), pin._replace(turn=(turn, parts)))

    async def fix_page(
        self,
        owner: PromptOwner,
        options: PromptOptions,
        *,
        is_start: bool = False,
        mark: PageMark | None = None,
    ) -> FixedPage:
        """The page of a conversation: the one that was fixed, or the newest one."""
        store, key = owner.store, _key_of(owner)
        whose: dict[str, Any] = {"budget": options.page_budget}
        at = now()
        newest = await store.page(owner.agent_id, owner.user_id, **whose)
        pin = _newer(self._pins.get(key), mark)
        if pin is None or is_start or owner.conversation is None or _is_over(pin, at, options):
            return self._fix(key, newest, at)
        if newest.version == pin.version:
            self._keep(key, pin._replace(used=at, text=newest.prompt))
            return FixedPage(newest, pin.at)
        fixed = await store.page(owner.agent_id, owner.user_id, as_of=pin.at, **whose)
        if fixed.version != pin.version:  # a fact of it was erased, or counts as doubtful now
            return self._fix(key, newest, at)
        self._keep(key, pin._replace(used=at, text=fixed.prompt))
        changes = newest.changes_since(fixed)
        kept = {line.content_id for line in newest.lines}
        gone = [line for line in changes.removed if line.content_id not in kept]
        removed = [line for line in gone[:_MOST_REMOVED] if await _is_retired(store, line, at)]
        return FixedPage(fixed, pin.at, changes.added, tuple(removed))

    def parts_of(
        self,
        owner: PromptOwner,
        fixed: FixedPage | None,
        recalled: Recalled | None,
        options: PromptOptions,
        *,
        summary: ConversationSummary | None = None,
        seen: Collection[str] = (),
        is_seen: Callable[[Line], bool] = lambda _: False,
    ) -> PromptParts:
        """The parts from what was found. Without a page, it is the one that was sent last."""
        block = Block(now=now()) if recalled is None else _without_seen(recalled, seen).without(is_seen)
        if fixed is None:
            pin = self._pins.get(_key_of(owner))
            rendered = block.render(summary=summary, budget=options.tail_budget)
            is_recent = pin is not None and now() - pin.used <= timedelta(seconds=options.idle_seconds)
            page, version = (pin.text, pin.version) if pin and is_recent else ("", "")
            return PromptParts(
                page, rendered.text, version, None, _shown(block, rendered), (), rendered.memory_count
            )
        block = _without_known(block, fixed)
        rendered = block.render(summary=summary, changes=fixed.changes, budget=options.tail_budget)
        return PromptParts(
            fixed.page.prompt,
            rendered.text,
            fixed.page.version,
            fixed.fixed_at,
            _shown(block, rendered),
            tuple(line.content_id for line in (*fixed.added, *fixed.removed)),
            len(fixed.page.lines) + rendered.memory_count,
        )

    def _fix(self, key: tuple[str | None, ...], page: UserPage, at: datetime) -> FixedPage:
        self._keep(key, _Pin(at, page.version, page.prompt, at))
        return FixedPage(page, at)

    def _keep(self, key: tuple[str | None, ...], pin: _Pin) -> None:
        if key[-1] is None:
            return
        self._pins[key] = pin
        self._pins.move_to_end(key)
        if len(self._pins) > _MOST_CONVERSATIONS:
            self._pins.popitem(last=False)


_of_stores: "WeakKeyDictionary[Any, PromptMemory]" = WeakKeyDictionary()


def prompts_of(store: Any) -> PromptMemory:
    """The prompts of a store: all that use the store share them."""
    return _of_stores.setdefault(store, PromptMemory())


def check_prompt_owner(agent_id: object, user_id: object) -> tuple[str, str]:
    """Check the owner of a memory before the first turn."""
    return check_owner("agent_id", agent_id), check_owner("user_id", user_id)


def conversation_key(first: str) -> str:
    """A key for a conversation that has no id: the first message that the model sees of it."""
    return f"first:{_digest(first)}"


def turn_key(texts: Iterable[str]) -> str:
    """A key for a turn that has no id: all that the user has said up to it."""
    return _digest("\0".join(texts))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _key_of(owner: PromptOwner) -> tuple[str | None, ...]:
    return (owner.store.tenant, owner.agent_id, owner.user_id, owner.conversation)


def _newer(pin: _Pin | None, mark: PageMark | None) -> _Pin | None:
    """What is known of a page here, unless it was fixed anew elsewhere."""
    if mark is None or (pin is not None and pin.used >= mark.used_at):
        return pin
    if pin is not None and pin.version == mark.version:
        return pin._replace(used=mark.used_at)
    return _Pin(mark.fixed_at, mark.version, "", mark.used_at)


def _is_over(pin: _Pin, at: datetime, options: PromptOptions) -> bool:
    return options.refresh == "turn" or at - pin.used > timedelta(seconds=options.idle_seconds)


async def _is_retired(store: PromptStore, line: PageLine, at: datetime) -> bool:
    """Whether an entry no longer holds. It may also have left the page because others need its room."""
    entry = await store.get_entry(line.content_id)
    if entry is None:
        return False  # erased: nothing may be said of it
    return entry.retired_at is not None or (entry.expires_at is not None and entry.expires_at <= at)


def _without_known(block: Block, fixed: FixedPage) -> Block:
    """A block without what the page says, and without what has changed: that is said first."""
    on_page = {each.content_id: each for each in fixed.page.lines if not each.is_doubtful and not each.is_cut}
    changed = {line.content_id for line in fixed.added if line.section != "instructions"}
    gone = {line.content_id for line in fixed.removed}
    sizes = {
        (each.conversation_id, each.message_id): len(terms(line.text))
        for line in on_page.values()
        for each in line.evidence
    }

    def is_known(line: Line) -> bool:
        if line.kind == "quote":
            size = sizes.get(line.messages[0], 0) if line.reason == "relevant" and line.messages else 0
            return len(line.messages) == 1 and size >= _AS_MUCH * len(terms(line.text.partition(": ")[2])) > 0
        if line.id in changed or line.id in gone:
            return line.reason != "earlier"
        return line.id in on_page and line.reason in ("relevant", "standing")

    return block.without(is_known)


def _shown(block: Block, rendered: MemoryBlock) -> tuple[Line, ...]:
    """The lines of a block that fit."""
    wishes = [line for place, line in enumerate(block.wishes) if place in rendered.shown.wishes]
    others = [line for line in block.lines if line.kind != "wish"]
    return (*wishes, *(line for place, line in enumerate(others) if place in rendered.shown.memories))


def _without_seen(recalled: Recalled, seen: Collection[str]) -> Block:
    """The block without messages whose texts the model sees anyway."""
    longest = 2 * max((len(hit.message.content) for hit in recalled.turns), default=0)
    texts = {_normalized(text) for text in seen if len(text) <= longest}
    known = {
        (hit.conversation_id, hit.message.message_id)
        for hit in recalled.turns
        if _normalized(hit.message.content) in texts
    }
    return recalled.block.without(lambda line: (line.conversation_id, line.id) in known)


def _normalized(text: str) -> str:
    return " ".join(text.split())


async def recall(owner: PromptOwner, question: str, options: PromptOptions) -> Recalled | None:
    """What is known about a question, for the tail; `None` without a question."""
    if not question.strip():
        return None
    budget = options.tail_budget + options.page_budget  # the page may say some of it
    return await owner.store.recall(question, owner.agent_id, owner.user_id, budget=budget)


async def _in_time(action: str, call: Awaitable[T], patience: float | None) -> T | None:
    """The result of a call to memory; `None` and a warning if it fails or takes too long."""
    try:
        async with asyncio.timeout(patience):
            return await call
    except (RecollectError, OSError, TimeoutError) as error:
        # The message of the error may quote contents.
        logger.warning("%s failed (%s); the prompt goes without it", action, type(error).__name__)
        return None
