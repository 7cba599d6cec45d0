"""The accounting of proxied calls: tokens and the audit log, written after the calls, many at once.

No call waits for them, and none fails because of them. Only a tenant with a token budget waits before its
call, for the reservation, and no longer than for its memories.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request

from ...errors import RecollectError, StorageError
from ...memory.store import MemoryStore
from ..access.audit import AuditEntry, AuditLog, new_entry
from ..access.authentication import Caller
from ..access.budget import Budget, Reservation
from ..access.cache import ExpiringCache
from ..problems import Problem
from ..telemetry.logs import current_request_id
from .backlog import Backlog
from .upstream import Ended
from .usage import tokens_of
from .values import Dialect, Said

_ANSWERED = range(200, 300)
_HUNG_UP = 499  # the status of a call whose caller left before there was an answer
_LARGE = 256 * 1024  # bytes: reading more would block the event loop
_MOST_LATE = 32  # reservations that the database still owes
_SUBJECT_SECONDS = 300.0
_COLLECT_ENTRIES, _COLLECT_TOKENS = 0.25, 0.05  # seconds: tokens also end reservations


@dataclass(frozen=True)
class Account:
    """Who made a call, and which one."""

    tenant: str
    key_id: str | None
    action: str
    request_id: str | None

    @classmethod
    def of(cls, request: Request) -> "Account":
        """The account of a request, whose route has an operation id."""
        caller: Caller = request.state.caller
        return cls(caller.tenant, caller.key_id, request.scope["route"].operation_id, current_request_id())


@dataclass(frozen=True)
class AccountedCall:
    """A call with what is to be accounted for."""

    account: Account
    store: MemoryStore
    user_id: str | None = None
    uses_model: bool = True
    reservation_id: str | None = None
    dialect: Dialect | None = None
    said: Sequence[Said] = field(default=(), repr=False)


@dataclass(frozen=True)
class _Entry:
    """An entry of the audit log, and the user whose hash is its target."""

    entry: AuditEntry
    store: MemoryStore | None = None
    user_id: str | None = field(default=None, repr=False)


class CallAccounting:
    """Reserves, counts and audits. `patience` is in seconds."""

    def __init__(self, audit: AuditLog, budget: Budget, patience: float) -> None:
        self._audit = audit
        self._budget = budget
        self._patience = patience
        self._subjects: ExpiringCache[tuple[str, str], str] = ExpiringCache(_SUBJECT_SECONDS)
        self._entries = Backlog(
            "audit log", self._write_entries, collect_seconds=_COLLECT_ENTRIES, may_write_twice=True
        )
        # Tokens are added up: a tenant must not pay twice for a call.
        self._tokens = Backlog(
            "tokens", budget.settle_all, collect_seconds=_COLLECT_TOKENS, may_write_twice=False
        )
        self._late: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.Task[None]] = set()

    async def reserve(self, tenant: str) -> str | None:
        """Reserve the tokens of a call; returns the id. Raises a `Problem` if the budget is used up.

        `None` if the tenant has no limit, or if the database does not answer in time: the call goes on, and
        its tokens are counted when it has ended.
        """
        if not self._budget.is_limited(tenant) or len(self._late) >= _MOST_LATE:
            return None
        reserving = asyncio.create_task(self._budget.reserve(tenant))
        try:
            await asyncio.wait([reserving], timeout=self._patience)
        finally:
            if not reserving.done():
                _keep(self._late, self._release(reserving))
        if not reserving.done():
            return None
        try:
            return reserving.result().hand_over()
        except (StorageError, OSError):
            return None

    def close(self, call: AccountedCall, ended: Ended) -> None:
        """Enter a call that has ended."""
        self.enter(call.account, ended.status or _HUNG_UP, call.store, call.user_id)
        if not call.uses_model or ended.status not in _ANSWERED or ended.content is None:
            self.settle(call, 0)
        elif len(ended.content) + sum(len(each.text) for each in call.said) > _LARGE:
            _keep(self._reading, self._settle_large(call, ended.encoding, ended.content))
        else:
            self.settle(call, tokens_of(ended.encoding, ended.content, call.dialect, call.said))

    def enter(
        self, account: Account, status: int, store: MemoryStore | None = None, user_id: str | None = None
    ) -> None:
        """Enter a call in the audit log."""
        entry = new_entry(account.tenant, account.key_id, account.action, None, status, account.request_id)
        self._entries.add(_Entry(entry, store, user_id))

    def settle(self, call: AccountedCall, tokens: int) -> None:
        """Count the tokens of a call in place of its reservation."""
        if tokens or call.reservation_id is not None:
            is_turn = call.dialect is not None
            settlement = self._budget.settlement(
                call.account.tenant, tokens, call.reservation_id, is_turn=is_turn
            )
            self._tokens.add(settlement)

    async def wait(self) -> None:
        """Wait until everything so far is written or dropped."""
        while self._reading:
            await asyncio.wait(self._reading)
        await self._entries.wait()
        await self._tokens.wait()

    async def aclose(self, seconds: float) -> None:
        """Write what is waiting for so many seconds, and stop."""
        if self._reading:
            await asyncio.wait(self._reading)
        for task in self._late:
            task.cancel()
        await asyncio.gather(
            self._entries.aclose(seconds), self._tokens.aclose(seconds), *self._late, return_exceptions=True
        )

    async def _settle_large(self, call: AccountedCall, encoding: str, content: bytes) -> None:
        self.settle(call, await asyncio.to_thread(tokens_of, encoding, content, call.dialect, call.said))

    async def _release(self, reserving: "asyncio.Task[Reservation]") -> None:
        """Give a reservation back that came too late for its call."""
        try:
            reservation = await reserving
        except (Problem, RecollectError, OSError):
            return
        await reservation.release()

    async def _write_entries(self, entries: Sequence[_Entry]) -> None:
        targeted = [replace(each.entry, target=await self._target_of(each)) for each in entries]
        await self._audit.record_all(targeted)

    async def _target_of(self, entry: _Entry) -> str | None:
        if entry.store is None or entry.user_id is None:
            return None
        whose = entry.store.tenant, entry.user_id
        subject = self._subjects.get(whose)
        if subject is None:
            try:
                subject = await entry.store.receipt_subject(entry.user_id)
            except ValueError:  # not a valid user id
                return None
            self._subjects.put(whose, subject)
        return f"user:{subject}"


def _keep(tasks: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None]) -> None:
    """Run something in the background; a task that nobody refers to could disappear."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
