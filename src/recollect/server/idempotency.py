"""`Idempotency-Key`: a request that is sent again makes nothing again.

Whoever comes first claims the key, by a lease that is renewed while the request runs. What it made is kept as
a small JSON object of ids, from which the answer is made again. The ids come from a seed that is kept with
the claim: whoever takes over from a process that died makes the same ids, and finds what is there already.
The table has no contents: the key and the body are hashes, the latter keyed with the former; after 24 hours
the row is gone.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import re
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..cancellation import finish_despite_cancellation
from ..errors import InvalidTypeError, InvalidValueError, RecollectError
from ..memory.database.memories import user_key
from ..sql.columns import check_id, json_to_column
from ..sql.database import SQLStore
from .database import claims
from .database.schema import ServiceSchema
from .problems import Problem

logger = logging.getLogger(__name__)

LIFETIME = 24 * 60 * 60.0
"""Seconds for which a key is remembered."""

_LEASE = 30.0  # seconds after which the claim of a process that died may be taken over
_KEY = re.compile("[!-~]{1,255}")
_PURGED_AT_ONCE = 500
_SERVER_FAULT = 500  # statuses from here on say that it is not known what was made


class Ids:
    """Makes the ids of what a request makes: the same ones whenever it is made again."""

    def __init__(self, seed: str, *, are_new: bool = True) -> None:
        self._seed = seed
        self.are_new = are_new
        """Whether nobody has made anything with them: no earlier attempt broke off."""
        self.user_id: str | None = None
        """Whom it concerns, if that was said."""

    def __call__(self, what: str) -> str:
        """The id of something, such as `conversation` or `message 3`: a UUID, by the seed of the claim."""
        digest = hashlib.sha256(f"{self._seed} {what}".encode()).digest()
        number = int.from_bytes(digest[:16], "big")
        number = number & ~(0xF << 76) | 8 << 76  # the version for ids of one's own making
        return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))

    def about(self, user_id: str) -> None:
        """Say whom it concerns, so that `forget_user` finds it."""
        self.user_id = user_id


@dataclass(frozen=True)
class Claim:
    """The right to carry out a request; or what was made, if it has been carried out."""

    tenant: str
    ids: Ids
    made: dict[str, Any] | None = None
    request_key: str | None = None
    """Where it is kept; `None` for a request without a key, of which nothing is."""
    owner: str = field(default="", repr=False)
    is_first: bool = True
    """Whether nobody has tried before, who may have made something."""


class Idempotency(SQLStore):
    """Remembers for a day what requests with an `Idempotency-Key` have made, for all instances."""

    schema = ServiceSchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        lease: float = _LEASE,
        lifetime: float = LIFETIME,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._lease = lease
        self._lifetime = lifetime
        self._queries = claims.ClaimQueries(self._database.dialect)

    async def once(
        self,
        tenant: str,
        place: str,
        key: str | None,
        body: bytes,
        make: Callable[[Ids], Awaitable[dict[str, Any]]],
    ) -> tuple[dict[str, Any], bool]:
        """What `make` returns, now or when it was first called for this key; and whether that was earlier.

        `make` returns a small JSON object of ids, and may be called again after a process died in the middle
        of it, with the same ids: it must then go on with what it finds. With no key it is simply called.
        """
        claim = await self.claim(tenant, place, key, body)
        if claim.made is not None:
            return claim.made, True
        async with self.held(claim):
            made = await make(claim.ids)
        await self.finish(claim, made)
        return made, False

    async def claim(self, tenant: str, place: str, key: str | None, body: bytes) -> Claim:
        """Claim a key for a request; raises a problem if another one has it."""
        if key is None:
            return Claim(tenant, Ids(secrets.token_hex(32)))
        request_key, body_hash = _hashes(check_id("tenant", tenant), place, check_key(key), body)
        asked = claims.Asked(tenant, request_key, body_hash, secrets.token_hex(32), uuid.uuid4().hex)
        claimed = await self._claim(asked)
        if claimed.decision == "reused":
            raise Problem("idempotency_key_reused", "this Idempotency-Key was sent with another body")
        if claimed.decision == "in_progress":
            headers = {"Retry-After": "1"}
            raise Problem("idempotency_in_progress", "send the request again a little later", headers=headers)
        is_first = claimed.decision == "new"
        ids = Ids(claimed.seed, are_new=is_first)
        return Claim(tenant, ids, claimed.made, request_key, asked.owner, is_first)

    @asynccontextmanager
    async def held(self, claim: Claim) -> AsyncIterator[None]:
        """Keep a claim while the block runs, and give it up if that fails."""
        if claim.request_key is None:
            yield
            return
        renewal = asyncio.create_task(self._renew(claim))
        failure: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failure = error
            raise
        finally:
            renewal.cancel()
            if failure is not None:
                nothing_made = claim.is_first and _is_refusal(failure)
                await finish_despite_cancellation(self.give_up(claim, nothing_made=nothing_made))

    async def finish(self, claim: Claim, made: Mapping[str, Any]) -> None:
        """Keep what was made, for those who send the request again.

        If that fails the request has succeeded all the same: sent again, it makes the same ids.
        """
        if claim.request_key is not None:
            user_id = claim.ids.user_id
            whose = None if user_id is None else user_key(claim.tenant, user_id)
            kept = (claim.request_key, claim.owner, json_to_column(made), whose)
            await self._change("not noted", self._queries.finish, kept)

    async def give_up(self, claim: Claim, *, nothing_made: bool) -> None:
        """Let another request have the key: any, if nothing was made, else the same one sent again.

        If that fails the lease runs out by itself, and the request has its own error.
        """
        query = self._queries.drop if nothing_made else self._queries.release
        await self._change("not given up", query, (claim.request_key, claim.owner))

    async def purge_expired(self) -> int:
        """Delete what has expired, and return how many keys that were."""
        purged = 0
        # Some at a time, so that others can write in between.
        while some := await self._write(partial(claims.change, self._queries.purge, (_PURGED_AT_ONCE,))):
            purged += some
        return purged

    async def forget_user(self, tenant: str, user_id: str) -> int:
        """Delete what requests about a user have left here, and return how many keys that were."""
        whose = user_key(check_id("tenant", tenant), check_id("user_id", user_id))
        return await self._write(partial(claims.change, self._queries.forget, (whose,)))

    async def _claim(self, asked: claims.Asked) -> claims.Claimed:
        how = (self._queries, asked, self._lease, self._lifetime)
        query, row, _ = claims.add(*how)
        # Most keys are new: those take one statement, and no transaction around it.
        if await self._write(partial(claims.change, query, row)):
            return claims.Claimed("new", asked.seed)
        return await self._write(partial(claims.claim, *how))

    async def _renew(self, claim: Claim) -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._lease / 3)
            renewed = (claim.request_key, claim.owner, self._lease)
            is_ours = await self._change("not renewed", self._queries.renew, renewed)

    async def _change(self, otherwise: str, query: str, parameters: tuple[Any, ...]) -> bool:
        """Change a claim, and tell whether it may still be ours; what goes wrong here stops no request."""
        try:
            is_ours = await self._write(partial(claims.change, query, parameters)) > 0
        except (RecollectError, OSError) as error:
            logger.warning("the claim of an idempotency key was %s (%s)", otherwise, type(error).__name__)
            return True
        if not is_ours:
            logger.warning("the claim of an idempotency key was %s: another has taken it over", otherwise)
        return is_ours


def check_key(key: str) -> str:
    """The value of an `Idempotency-Key` header; a problem that names it if it is not as it should be."""
    if not _KEY.fullmatch(key):
        message = "must be 1 to 255 visible ASCII characters"
        error = {"field": "header.Idempotency-Key", "message": message}
        raise Problem("validation_failed", f"Idempotency-Key {message}", errors=[error])
    return key


def _is_refusal(failure: BaseException) -> bool:
    """Whether a request was refused for what it is, so that nothing was made, and another may follow."""
    if isinstance(failure, Problem):
        return failure.status < _SERVER_FAULT
    is_ours = isinstance(failure, InvalidValueError | InvalidTypeError | RecollectError)
    return is_ours and isinstance(failure, ValueError | TypeError)


def _hashes(tenant: str, place: str, key: str, body: bytes) -> tuple[str, str]:
    """What a request is found by, and what tells its body from another."""
    request_key = hashlib.sha256(json.dumps([tenant, place, key]).encode()).hexdigest()
    return request_key, hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
