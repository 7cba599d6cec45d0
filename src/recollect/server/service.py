"""The parts of a running service, opened and closed together."""

import asyncio
import logging
import math
import time
from dataclasses import dataclass, field

from ..integrations.langgraph.threads import ThreadList
from ..memory.pipeline.stages import Extractor
from ..memory.search.embedders import build_embedder
from ..memory.store import MemoryStore
from ..providers.factory import AgentRegistry, build_chat_provider
from ..providers.protocol import ChatProvider
from .access.audit import AuditLog
from .access.budget import Budget, ReservationRules, TokenLedger
from .access.keys import KeyStore
from .access.limits import RateLimiter
from .idempotency import Idempotency
from .learner import LearningProcess
from .problems import Problem
from .proxy.proxy import Proxy
from .settings import Settings
from .telemetry.logs import describe_error
from .telemetry.metrics import Metrics
from .telemetry.processes import Siblings

_log = logging.getLogger("recollect.server")
_PREPARE_AFTER = 1.0  # seconds, for the first requests after a start
_TURN_END_SECONDS = 60.0  # after its timeout, to record a turn and settle its tokens
_LEAST_RECORD_SECONDS = 5.0  # for the last proxied turns, also if requests used up the grace period


@dataclass
class Service:
    """The parts of a running service, all on one database."""

    settings: Settings
    memory: MemoryStore
    """The store of all tenants. A request works with `memory.for_tenant(name)`."""
    keys: KeyStore
    audit: AuditLog
    idempotency: Idempotency
    ledger: TokenLedger
    budget: Budget
    provider: ChatProvider
    metrics: Metrics
    extractor: Extractor | None
    """The extractor of the workers of this process; `None` if there are none."""
    learning: LearningProcess | None
    """The learning process; `None` if workers run in this process, or not at all."""
    threads: ThreadList
    """The threads of LangGraph in the same database. They belong to the default tenant."""
    proxy: Proxy | None = None
    """`None` if it is off."""
    rates: RateLimiter = field(default_factory=RateLimiter)
    siblings: Siblings | None = None
    """The other processes of the service; `None` if it has only one."""
    preparing: "asyncio.Task[None] | None" = None
    """Loads what the first chat needs."""
    stops_at: float | None = None
    """When running turns are interrupted, by `time.monotonic`; `None` while the service is not stopping."""

    @property
    def is_stopping(self) -> bool:
        """Whether the service is shutting down."""
        return self.stops_at is not None

    @property
    def is_learning(self) -> bool:
        """Whether the learning process is alive or not needed yet, or the workers of this process run."""
        return self.learning.is_able if self.learning is not None else self.memory.is_learning

    def begin_to_stop(self) -> None:
        """Start the grace period for running requests and turns. A second call does nothing."""
        if self.stops_at is None:
            self.stops_at = time.monotonic() + self.settings.server.grace_seconds

    def check_rate(self, tenant: str) -> None:
        """Count a request of a tenant. Raises a `Problem` if there were too many in a minute."""
        per_minute = self.settings.limits_for(tenant).requests_per_minute
        wait = 0.0 if per_minute is None else self.rates.take(tenant, per_minute)
        if wait > 0:
            headers = {"Retry-After": str(math.ceil(wait))}
            raise Problem(
                "rate_limited", f"At most {per_minute} requests per minute are allowed.", headers=headers
            )

    def start(self) -> None:
        """Start learning, in this process or in the learning process, and prepare chats a little later."""
        self.preparing = asyncio.create_task(_prepare(self.provider))
        if self.learning is not None:
            self.learning.start(self.memory.monitor.has_work)
        else:
            self.memory.start()

    async def interrupt_turns(self) -> None:
        """Wait until the grace period ends, then interrupt the running turns. They end as failed."""
        await asyncio.sleep(self._grace_left())
        await self.provider.aclose(0.0)

    def _grace_left(self) -> float:
        return max(0.0, (self.stops_at or 0.0) - time.monotonic())

    async def aclose(self) -> None:
        """Wait for running turns within the grace period, hand back runs, and close the database."""
        self.begin_to_stop()
        if self.preparing is not None:
            self.preparing.cancel()
        await self.provider.aclose(self._grace_left())
        if self.proxy is not None:
            await self.proxy.aclose(max(self._grace_left(), _LEAST_RECORD_SECONDS))
        if self.learning is not None:
            await self.learning.stop()
        await self.memory.aclose()
        if self.extractor is not None:
            await self.extractor.aclose()
        for part in (self.audit, self.idempotency, self.ledger, self.keys, self.threads):
            await part.aclose()


async def _prepare(provider: ChatProvider) -> None:
    """Prepare chats once the service has started: neither the start nor the first chat waits for it."""
    await asyncio.sleep(_PREPARE_AFTER)
    try:
        await provider.prepare()
    except Exception as error:  # noqa: BLE001 - the end of the task; the first chat raises the error itself
        _log.warning("chat not prepared", extra={"error": describe_error(error)})


def open_service(
    settings: Settings,
    registry: AgentRegistry | None = None,
    learning: LearningProcess | None = None,
) -> Service:
    """Create the parts as the settings say. No connection is opened yet."""
    url, place, metrics = settings.database.url, settings.database.options(), Metrics()
    ledger = TokenLedger(url, **place)
    rules = _reservation_rules(settings)
    budget = Budget(ledger, lambda tenant: settings.limits_for(tenant).tokens_per_day, rules=rules)
    budget.on_spent = metrics.count_tokens
    learning = learning or _learning_of(settings, metrics)
    workers = 0 if learning is not None else settings.memory.workers
    extractor = _extractor_of(settings) if workers else None
    audit = AuditLog(url, **place)
    return Service(
        settings,
        _memory_of(settings, extractor, budget, learning),
        KeyStore(url, **place, require_keys=settings.access.require_keys),
        audit,
        Idempotency(url, **place),
        ledger,
        budget,
        _provider_of(settings, registry, budget),
        metrics,
        extractor,
        learning,
        ThreadList(url, **place),
        Proxy(settings, metrics, audit, budget) if settings.proxy.enabled else None,
    )


def _reservation_rules(settings: Settings) -> ReservationRules:
    longest_turn = settings.chat.lock_seconds + settings.chat.timeout_seconds
    return ReservationRules(
        lambda tenant: settings.limits_for(tenant).tokens_per_turn, longest_turn + _TURN_END_SECONDS
    )


def _learning_of(settings: Settings, metrics: Metrics) -> LearningProcess | None:
    if not settings.memory.own_process or not settings.memory.workers:
        return None
    learning = LearningProcess(settings)
    learning.count_tokens = metrics.count_tokens
    return learning


def _extractor_of(settings: Settings) -> Extractor:
    from ..memory.extraction import build_extractor  # slow to import

    return build_extractor(settings.memory.extractor, **settings.memory.extraction())


def _memory_of(
    settings: Settings, extractor: Extractor | None, meter: Budget, learning: LearningProcess | None
) -> MemoryStore:
    return MemoryStore(
        settings.database.url,
        extractor=extractor,
        embedder=build_embedder(settings.memory.embedder),
        workers=settings.memory.workers if learning is None else 0,
        all_tenants=True,
        meter=meter,
        mask_secrets_in_messages=settings.memory.mask_secrets_in_messages,
        on_work=None if learning is None else learning.wake,
        **settings.database.options(),
    )


def _provider_of(settings: Settings, registry: AgentRegistry | None, meter: Budget) -> ChatProvider:
    return build_chat_provider(
        settings.database.url,
        settings.chat,
        registry,
        meter=meter,
        quiet_seconds=settings.memory.quiet_seconds,
        **settings.database.options(),
    )
