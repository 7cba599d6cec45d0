"""The proxy of a service: its parts, and what happens to one call."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.requests import Request

from ...memory.prompting import PromptOptions
from ...memory.store import MemoryStore
from ..access.audit import AuditLog
from ..access.authentication import is_our_key
from ..access.budget import Budget
from ..problems import Problem
from ..settings import Settings
from ..telemetry.metrics import Metrics
from .accounting import Account, AccountedCall, CallAccounting
from .answers import DECODABLE
from .exact_json import decode_object
from .recalling import DeadlineRecall, Memories
from .recording import Recorder, Turn
from .speakers import Speaker, speaker_of
from .upstream import Call, Ended, PassedOn, RawHeaders, Upstream, headers_to_pass_on
from .values import Body, Dialect, Said, Thread, is_first_call, placed

_ANSWERED = range(200, 300)
_LARGE = 256 * 1024  # bytes: parsing more would block the event loop
_NO_PROVIDER_KEY = "Send the provider's own key, too, as its clients do: the service has none for it."


@dataclass(frozen=True)
class Provider:
    """Where the calls of an API go, and how their keys are sent."""

    url: str
    key: SecretStr | None
    sends_bearer: bool

    def credentials(self, headers: Headers) -> RawHeaders:
        """The key headers for the provider: with the key of the service, else those of the caller.

        Our own keys are never passed on.
        """
        if self.key is not None:
            secret = self.key.get_secret_value()
            named = ("authorization", f"Bearer {secret}") if self.sends_bearer else ("x-api-key", secret)
            return [(named[0].encode(), named[1].encode())]
        given = [(name, headers.get(name)) for name in ("authorization", "x-api-key", "api-key")]
        passed = [(name, value) for name, value in given if value and not is_our_key(value)]
        if not passed and any(value for _, value in given):
            raise Problem("unauthenticated", _NO_PROVIDER_KEY)
        return [(name.encode(), value.encode("latin-1")) for name, value in passed]


@dataclass(frozen=True)
class _Enriched:
    """A call with its memories, and what is needed to record it."""

    content: bytes
    state: str
    speaker: Speaker | None = None
    thread: Thread = field(default_factory=Thread)
    said: Sequence[Said] = ()


class Proxy:
    """Passes calls on to the providers. Without an owner for its memories, a call passes untouched."""

    def __init__(self, settings: Settings, metrics: Metrics, audit: AuditLog, budget: Budget) -> None:
        self._settings = settings.proxy
        seconds = settings.proxy.recall_milliseconds / 1000
        self.accounting = CallAccounting(audit, budget, seconds)
        self._recall = DeadlineRecall(seconds, _options_of(settings))
        self._count_state = metrics.count_proxied_call
        self.recorder = Recorder(
            learn_after=settings.memory.quiet_seconds,
            most_messages=settings.server.max_messages,
            count=metrics.count_proxied_turn,
        )
        self._upstream = Upstream(
            timeout_seconds=settings.proxy.timeout_seconds,
            max_connections=settings.server.max_concurrency,
        )
        self.openai = Provider(settings.proxy.openai_url, settings.proxy.openai_key, sends_bearer=True)
        self.anthropic = Provider(
            settings.proxy.anthropic_url, settings.proxy.anthropic_key, sends_bearer=False
        )

    async def pass_on(self, request: Request, provider: Provider, path: str) -> PassedOn:
        """Pass a call on as it is. It uses no model, and is not accounted for."""
        return self._passed(request, provider, path, _Enriched(await request.body(), "off"))

    async def pass_on_counted(
        self, request: Request, provider: Provider, path: str, store: MemoryStore
    ) -> PassedOn:
        """Pass a call on as it is, and count its tokens."""
        call = await self._book(request, store)
        with self._released_if_refused(call):
            passed = self._passed(request, provider, path, _Enriched(await request.body(), "off"))
        passed.on_end = partial(self.accounting.close, call)
        return passed

    async def pass_on_with_memory(
        self,
        request: Request,
        provider: Provider,
        path: str,
        dialect: Dialect,
        store: MemoryStore,
        *,
        uses_model: bool = True,
    ) -> PassedOn:
        """Pass a call on with memories. If it `uses_model`, record what was said, and count its tokens."""
        call = await self._book(request, store, uses_model=uses_model)
        with self._released_if_refused(call):
            enriched = await self._enrich(request, dialect, store)
            passed = self._passed(request, provider, path, enriched)
        user = None if enriched.speaker is None else enriched.speaker.user_id
        call = replace(call, user_id=user, dialect=dialect, said=enriched.said)
        passed.on_end = partial(self._end_turn, call, enriched)
        return passed

    async def user_of(self, request: Request, dialect: Dialect | None) -> str | None:
        """The user of a call that is refused; `None` if it names none, or not as it should."""
        body = None if dialect is None else await _decoded(await request.body())
        named = None if body is None or dialect is None else dialect.user_of(body)
        try:
            speaker = speaker_of(request.headers, named, self._settings.default_agent)
        except Problem:
            return None
        return None if speaker is None else speaker.user_id

    async def aclose(self, seconds: float) -> None:
        """Record what is waiting, for so many seconds, and close the connections."""
        await asyncio.gather(self.recorder.aclose(seconds), self.accounting.aclose(seconds))
        await self._recall.aclose()
        await self._upstream.aclose()

    async def _book(self, request: Request, store: MemoryStore, *, uses_model: bool = True) -> AccountedCall:
        """A call with its tokens reserved. Raises a `Problem` if none are left."""
        reservation_id = await self.accounting.reserve(store.tenant) if uses_model else None
        return AccountedCall(Account.of(request), store, uses_model=uses_model, reservation_id=reservation_id)

    @contextmanager
    def _released_if_refused(self, call: AccountedCall) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.accounting.settle(call, 0)
            raise

    async def _enrich(self, request: Request, dialect: Dialect, store: MemoryStore) -> _Enriched:
        content = await request.body()
        body = await _decoded(content)
        named = None if body is None else dialect.user_of(body)
        speaker = speaker_of(request.headers, named, self._settings.default_agent)
        said = [] if body is None else dialect.said_in(body)
        if body is None or speaker is None:
            return _Enriched(content, "off", said=said)
        thread = dialect.thread_of(body)
        memories = await self._recall(store, speaker, said, thread, is_start=is_first_call(body))
        changed = await self._changed(dialect, content, body, memories)
        state = "none" if changed is None and memories.state == "added" else memories.state
        return _Enriched(content if changed is None else changed, state, speaker, thread, said)

    async def _changed(
        self, dialect: Dialect, content: bytes, body: Body, memories: Memories
    ) -> bytes | None:
        parts = placed(memories.parts, self._settings.memory_place)
        if not parts.page and not parts.tail:
            return None
        arguments = (content, body, parts)
        if len(content) > _LARGE:
            return await asyncio.to_thread(dialect.add_memories, *arguments)
        return dialect.add_memories(*arguments)

    def _passed(self, request: Request, provider: Provider, path: str, enriched: _Enriched) -> PassedOn:
        self._count_state(enriched.state)
        query = request.scope["query_string"].decode("latin-1")
        url = f"{provider.url.rstrip('/')}{path}{'?' if query else ''}{query}"
        given = [(name, _readable(name, value)) for name, value in request.headers.raw]
        headers = headers_to_pass_on(given, provider.credentials(request.headers))
        return PassedOn(self._upstream, Call(request.method, url, headers, enriched.content), enriched.state)

    def _end_turn(self, call: AccountedCall, enriched: _Enriched, ended: Ended) -> None:
        self.accounting.close(call, ended)
        speaker, thread, said = enriched.speaker, enriched.thread, enriched.said
        if not call.uses_model or call.dialect is None or speaker is None or not said:
            return
        if ended.status in _ANSWERED and ended.content is not None:
            turn = Turn(call.store, speaker, thread, said, call.dialect, ended.encoding, ended.content)
            self.recorder.add(turn)


def _options_of(settings: Settings) -> PromptOptions:
    given = settings.proxy
    return PromptOptions(given.page_tokens, given.memory_tokens, given.page_refresh)


def _readable(name: bytes, value: bytes) -> bytes:
    """The value of a header for the provider: only encodings of the answer that we can read."""
    if name != b"accept-encoding":
        return value
    wanted = (part.strip() for part in value.split(b","))
    return b", ".join(part for part in wanted if part.partition(b";")[0] in DECODABLE) or b"identity"


async def _decoded(content: bytes) -> Body | None:
    """The JSON object of a call; `None` if it is none, which the provider will say."""
    if len(content) > _LARGE:
        return await asyncio.to_thread(decode_object, content)
    return decode_object(content)
