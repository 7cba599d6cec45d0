"""`Idempotency-Key`: a repeated request creates nothing twice.

The first request claims the key with a lease, which is renewed while the request runs. The result is stored
as a small JSON object of ids, from which a repeated request rebuilds its response. The ids derive from a seed
that is stored with the claim: a process that takes over from a dead one makes the same ids, and finds the
objects that exist already.
The table contains no contents. The key and the body are stored as hashes, that of the body keyed with the
key. A row expires after 24 hours.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..cancellation import finish_despite_cancellation
from ..errors import InvalidTypeError, InvalidValueError, RecollectError
from ..ids import new_hex, new_id, uuid_text
from ..memory.database.memories import user_key
from ..sql.columns import check_id, json_to_column
from ..sql.database import SQLStore
from .database import claims
from .database.schema import ServiceSchema
from .problems import IN_PROGRESS, Problem

logger = logging.getLogger(__name__)

LIFETIME = 24 * 60 * 60.0
"""Seconds for which a key is remembered."""

_LEASE = 30.0  # seconds after which the claim of a dead process may be taken over
_KEY = re.compile("[!-~]{1,255}")
_PURGE_BATCH = 500
_MOST_LEFT = 10_000
_SERVER_ERROR = 500  # from this status on, the request may have created something


class Ids:
    """Generates the ids of the objects that a request creates: the same ones at every attempt.

    They begin with the time of the first attempt, as other new ids begin with theirs.
    """

    def __init__(self, seed: str, *, are_new: bool = True) -> None:
        self._seed = seed
        self._time = _time_of(seed)
        self.are_new = are_new
        """False if an earlier attempt was interrupted, and may have created objects with these ids."""
        self.user_id: str | None = None
        """The user that the request is about, if set."""

    def __call__(self, name: str) -> str:
        """The id of an object, such as `conversation` or `message 3`: a UUID derived from the seed."""
        digest = hashlib.sha256(f"{self._seed} {name}".encode()).digest()
        return uuid_text((self._time + digest)[:16], "8")  # the version of ids that are made otherwise

    def short(self, name: str) -> str:
        """Eight random characters of the id of an object."""
        return self(name)[-8:]

    def about(self, user_id: str) -> None:
        """Set the user that the request is about, so that `forget_user` finds its key."""
        self.user_id = user_id


def new_seed() -> str:
    """A seed for the ids of a new request."""
    return f"{new_id()}/{new_hex()}"


def _time_of(seed: str) -> bytes:
    """The time at the beginning of a seed."""
    return bytes.fromhex(seed[:13].replace("-", ""))


@dataclass(frozen=True)
class Claim:
    """The right to run a request, or the result of the request if it ran before."""

    tenant: str
    ids: Ids
    made: dict[str, Any] | None = None
    request_key: str | None = None
    """The row of the claim; `None` for a request without a key, which has no row."""
    owner: str = field(default="", repr=False)
    is_first: bool = True
    """False if an earlier attempt may have created something."""


class Idempotency(SQLStore):
    """Stores the results of requests with an `Idempotency-Key` for a day, for all instances."""

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
        self._left: OrderedDict[str, str] = OrderedDict()
        """The owners of claims that could not be released, by their keys: the database was away."""

    async def once(
        self,
        tenant: str,
        place: str,
        key: str | None,
        body: bytes,
        make: Callable[[Ids], Awaitable[dict[str, Any]]],
    ) -> tuple[dict[str, Any], bool]:
        """Run `make` once for a key: returns its result, and whether an earlier request made it.

        `make` returns a small JSON object of ids. If a process dies during `make`, another may call it again
        with the same ids: it must then continue with the objects that exist. Without a key it is just called.
        """
        claim = await self.claim(tenant, place, key, body)
        if claim.made is not None:
            return claim.made, True
        async with self.hold(claim):
            made = await make(claim.ids)
        await self.finish(claim, made)
        return made, False

    async def claim(self, tenant: str, place: str, key: str | None, body: bytes) -> Claim:
        """Claim a key for a request. Raises a `Problem` if another request holds or has used the key."""
        if key is None:
            return Claim(tenant, Ids(new_seed()))
        request_key, body_hash = _hashes(check_id("tenant", tenant), place, check_key(key), body)
        request = claims.ClaimRequest(tenant, request_key, body_hash, new_seed(), new_hex())
        await self._release_left(request_key)
        try:
            claimed = await self._claim(request)
        except (RecollectError, OSError):  # it may be stored all the same
            self._note_left(request_key, request.owner)
            raise
        if claimed.decision == "reused":
            raise Problem(
                "idempotency_key_reused", "This Idempotency-Key was used with another body. Use a new key."
            )
        if claimed.decision == "in_progress":
            headers = {"Retry-After": "1"}
            raise Problem("idempotency_in_progress", IN_PROGRESS, headers=headers)
        is_first = claimed.decision == "new"
        ids = Ids(claimed.seed, are_new=is_first)
        return Claim(tenant, ids, claimed.made, request_key, request.owner, is_first)

    @asynccontextmanager
    async def hold(self, claim: Claim) -> AsyncIterator[None]:
        """Renew a claim while the block runs, and give it up if the block fails."""
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
        """Store the result for repeated requests.

        A database error here does not fail the request: a repeated request makes the same ids.
        """
        if claim.request_key is not None:
            user_id = claim.ids.user_id
            owner_key = None if user_id is None else user_key(claim.tenant, user_id)
            row = (claim.request_key, claim.owner, json_to_column(made), owner_key)
            await self._change("finish", self._queries.finish, row)

    async def give_up(self, claim: Claim, *, nothing_made: bool) -> None:
        """Release the key: for any request if nothing was created, else for a repetition of the same one.

        A database error here is only logged: the next request with the key releases it, or else its lease
        expires.
        """
        query = self._queries.drop if nothing_made else self._queries.release
        await self._change("release", query, (claim.request_key, claim.owner))

    async def _release_left(self, request_key: str) -> None:
        """Release a claim of an earlier request to this process, if the database was away then."""
        owner = self._left.get(request_key)
        if owner is not None:
            await self._write(partial(claims.change, self._queries.release, (request_key, owner)))
            self._left.pop(request_key, None)

    def _note_left(self, request_key: str, owner: str) -> None:
        self._left[request_key] = owner
        while len(self._left) > _MOST_LEFT:
            self._left.popitem(last=False)

    async def purge_expired(self) -> int:
        """Delete expired keys; returns how many."""
        purged = 0
        # In batches, so that other writes can run in between.
        while count := await self._write(partial(claims.change, self._queries.purge, (_PURGE_BATCH,))):
            purged += count
        return purged

    async def forget_user(self, tenant: str, user_id: str) -> int:
        """Delete the keys of requests about a user; returns how many."""
        owner_key = user_key(check_id("tenant", tenant), check_id("user_id", user_id))
        return await self._write(partial(claims.change, self._queries.forget, (owner_key,)))

    async def _claim(self, request: claims.ClaimRequest) -> claims.ClaimResult:
        arguments = (self._queries, request, self._lease, self._lifetime)
        query, row, _ = claims.add(*arguments)
        # Most keys are new. These take one statement, without a transaction around it.
        if await self._write(partial(claims.change, query, row)):
            return claims.ClaimResult("new", request.seed)
        return await self._write(partial(claims.claim, *arguments))

    async def _renew(self, claim: Claim) -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._lease / 3)
            renewed = (claim.request_key, claim.owner, self._lease)
            is_ours = await self._change("renew", self._queries.renew, renewed)

    async def _change(self, action: str, query: str, parameters: tuple[Any, ...]) -> bool:
        """Change a claim; returns whether it may still be ours. A failure is logged and stops no request."""
        try:
            is_ours = await self._write(partial(claims.change, query, parameters)) > 0
        except (RecollectError, OSError) as error:
            fields = {"action": action, "error": type(error).__name__}
            logger.warning("idempotency claim could not be changed", extra=fields)
            if action != "renew":
                self._note_left(parameters[0], parameters[1])
            return True
        if not is_ours:
            logger.warning("idempotency claim lost to another request", extra={"action": action})
        return is_ours


def check_key(key: str) -> str:
    """Validate the value of an `Idempotency-Key` header. Raises a `Problem` that names the header."""
    if not _KEY.fullmatch(key):
        message = "must be 1 to 255 visible ASCII characters"
        error = {"field": "header.Idempotency-Key", "message": message}
        raise Problem("validation_failed", f"Idempotency-Key {message}", errors=[error])
    return key


def _is_refusal(failure: BaseException) -> bool:
    """Whether the request was refused as invalid: nothing was created, and the key can be used anew."""
    if isinstance(failure, Problem):
        return failure.status < _SERVER_ERROR
    is_ours = isinstance(failure, InvalidValueError | InvalidTypeError | RecollectError)
    return is_ours and isinstance(failure, ValueError | TypeError)


def _hashes(tenant: str, place: str, key: str, body: bytes) -> tuple[str, str]:
    """The hash that identifies a request, and the hash of its body."""
    request_key = hashlib.sha256(json.dumps([tenant, place, key]).encode()).hexdigest()
    return request_key, hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
