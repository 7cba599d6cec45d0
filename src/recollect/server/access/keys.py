"""API keys. Only hashes of their secrets are stored."""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ...errors import RecollectError
from ...ids import new_hex
from ...sql.columns import check_id, check_time, time_from_column, time_to_column
from ...sql.database import SQLStore
from ...sql.scripts import Row, Script, Statement
from ...text_checks import check_text
from ..database.schema import API_KEYS, ServiceSchema
from .cache import ExpiringCache
from .key_mark import mark_of, set_mark

logger = logging.getLogger(__name__)

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""Each scope includes those before it."""

RequireKeys = Literal["auto", "always", "never"]
"""Whether requests need a key: `auto` means since the first key was created."""

_KEY_ID = re.compile("[0-9a-f]{32}")
_KEY = re.compile(r"rk_([0-9a-f]{32})_([0-9a-f]{64})")
_MAX_KEY_LENGTH = 100  # characters; our own keys are shorter
_MAX_NAME_LENGTH = 200
_UNKNOWN_KEY_HASH = "0" * 64  # compared for an unknown id; no secret has this hash
_USE_INTERVAL = timedelta(hours=1)  # the last use is recorded at most this often

_PUBLIC = "key_id, tenant, scope, name, created_at, expires_at, revoked_at, last_used_at"
_ADD = (
    f"INSERT INTO {API_KEYS.name} (key_id, tenant, scope, name, created_at, expires_at, secret_hash)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
)
_READ = f"SELECT {_PUBLIC}, secret_hash FROM {API_KEYS.name} WHERE key_id = ?1"
_LIST = (
    f"SELECT {_PUBLIC} FROM {API_KEYS.name} WHERE (CAST(?1 AS VARCHAR) IS NULL OR tenant = ?1)"
    " ORDER BY created_at, key_id"
)
_REVOKE = (
    f"UPDATE {API_KEYS.name} SET revoked_at = coalesce(revoked_at, ?2) WHERE key_id = ?1 RETURNING {_PUBLIC}"
)
_USE = f"UPDATE {API_KEYS.name} SET last_used_at = ?2 WHERE key_id = ?1"
_ANY = f"SELECT 1 FROM {API_KEYS.name} LIMIT 1"


@dataclass(frozen=True)
class Key:
    """A key without its secret, which only its owner has."""

    key_id: str
    tenant: str
    scope: Scope
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """Accurate to an hour."""

    def is_valid(self, now: datetime) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class _KeyRecord(NamedTuple):
    key: Key
    secret_hash: str


class KeyStore(SQLStore):
    """The keys of all tenants, in SQLite or PostgreSQL.

    The text of a key is `rk_<key_id>_<secret>`. Keys are cached for a second, so a key that another process
    revokes stays valid here for up to a second.
    """

    schema = ServiceSchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
        require_keys: RequireKeys = "auto",
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._require_keys = require_keys
        self._mark = mark_of(url_or_path)
        self._known: ExpiringCache[str, _KeyRecord] = ExpiringCache()
        # A cache of its own, so that a flood of invented ids cannot evict existing keys.
        self._unknown: ExpiringCache[str, bool] = ExpiringCache()
        self._has_rows: ExpiringCache[str, bool] = ExpiringCache()
        self._were_made = False

    async def create(
        self,
        tenant: str,
        scope: Scope,
        *,
        name: str = "",
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
    ) -> tuple[Key, str]:
        """Create a key; returns it with its text, which is stored nowhere and cannot be read again."""
        now, secret = datetime.now(UTC), secrets.token_hex(32)
        key = Key(
            new_hex(),
            check_id("tenant", _check_length("tenant", tenant)),
            _check_scope(scope),
            check_text("name", _check_length("name", name)),
            now,
            _check_expiry(now, expires_at, ttl),
            revoked_at=None,
            last_used_at=None,
        )
        await self._write(partial(_add, key, _hash_of(secret)))
        await self._remember()
        return key, f"rk_{key.key_id}_{secret}"

    async def verify(self, text: str) -> Key | None:
        """The key with this text; `None` if it is unknown, revoked or expired."""
        match = _KEY.fullmatch(text) if len(text) <= _MAX_KEY_LENGTH else None
        if match is None:
            return None
        key_id, secret = match.groups()
        stored = await self._find(key_id)
        # The only place that compares a secret. An unknown id takes the same steps, against timing attacks.
        expected = _UNKNOWN_KEY_HASH if stored is None else stored.secret_hash
        matches = hmac.compare_digest(_hash_of(secret), expected)
        now = datetime.now(UTC)
        if stored is None or not matches or not stored.key.is_valid(now):
            return None
        return await self._record_use(stored, now)

    async def revoke(self, key_id: str) -> Key | None:
        """Revoke a key; `None` if there is none with this id. A second call changes nothing."""
        if not _KEY_ID.fullmatch(key_id):
            return None
        revoked = await self._write(partial(_revoke, key_id, time_to_column(datetime.now(UTC))))
        self._known.remove(key_id)
        return revoked

    async def are_required(self) -> bool:
        """Whether a request needs a key, as `require_keys` says."""
        return await self.any() if self._require_keys == "auto" else self._require_keys == "always"

    async def any(self) -> bool:
        """Whether a key was ever created. Revoked keys count: revoking the last must not open the service.

        So do keys of a file that is missing or was replaced.
        """
        if not self._were_made and (await self._any_stored() or self._is_marked()):
            await self._remember()
        return self._were_made

    async def are_lost(self) -> bool:
        """Whether keys were created, but the file has none: it was replaced, or emptied.

        It is not known of a database server, which has no mark.
        """
        if self._mark is None or not await self.any() or self._has_rows.get(""):
            return False
        self._has_rows.remove("")  # another process may have created the first key a moment ago
        return not await self._any_stored()

    async def _any_stored(self) -> bool:
        known = self._has_rows.get("")
        if known is None:
            known = await self._fetch(_ANY, (), bool)
            self._has_rows.put("", known)
        return known

    async def _remember(self) -> None:
        """Remember that keys were created: in this process, and beside a file."""
        self._were_made = True
        self._has_rows.remove("")
        if self._mark is not None and not self._mark.exists():
            await asyncio.to_thread(set_mark, self._mark)

    def _is_marked(self) -> bool:
        return self._mark is not None and self._mark.exists()

    async def list(self, tenant: str | None = None) -> Sequence[Key]:
        """All keys, or those of a tenant, oldest first. Revoked and expired keys are included."""
        wanted = None if tenant is None else check_id("tenant", tenant)
        return await self._fetch(_LIST, (wanted,), _keys_from)

    async def _find(self, key_id: str) -> _KeyRecord | None:
        cached = self._known.get(key_id)
        if cached is not None or self._unknown.get(key_id):
            return cached
        found = await self._fetch(_READ, (key_id,), _record_from)
        if found is None:
            self._unknown.put(key_id, True)
        else:
            self._known.put(key_id, found)
        return found

    async def _record_use(self, stored: _KeyRecord, now: datetime) -> Key:
        """Record the use of a key at most once an hour. A database error is logged and refuses no caller."""
        last = stored.key.last_used_at
        if last is not None and now - last < _USE_INTERVAL:
            return stored.key
        used = stored._replace(key=replace(stored.key, last_used_at=now))
        self._known.put(used.key.key_id, used)  # first, so that concurrent requests do not record it, too
        try:
            await self._write(partial(_use, used.key.key_id, time_to_column(now)))
        except (RecollectError, OSError) as error:
            logger.warning("use of a key could not be recorded", extra={"error": type(error).__name__})
        return used.key


def _hash_of(secret: str) -> str:
    # A secret of 256 random bits cannot be guessed, so it needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()


# --- transactions ---


def _add(key: Key, secret_hash: str) -> Script[None]:
    expires_at = None if key.expires_at is None else time_to_column(key.expires_at)
    created_at = time_to_column(key.created_at)
    row = (key.key_id, key.tenant, key.scope, key.name, created_at, expires_at, secret_hash)
    yield Statement(_ADD, row, alone=True)


def _revoke(key_id: str, now: str) -> Script[Key | None]:
    rows = yield Statement(_REVOKE, (key_id, now), alone=True)
    return _key_from(rows[0]) if rows else None


def _use(key_id: str, now: str) -> Script[None]:
    yield Statement(_USE, (key_id, now), alone=True)


# --- rows ---


def _keys_from(rows: Sequence[Row]) -> Sequence[Key]:
    return [_key_from(row) for row in rows]


def _record_from(rows: Sequence[Row]) -> _KeyRecord | None:
    return _KeyRecord(_key_from(rows[0][:-1]), rows[0][-1]) if rows else None


def _key_from(row: Row) -> Key:
    key_id, tenant, scope, name, *times = row
    created_at, *others = (None if time is None else time_from_column(time) for time in times)
    assert created_at is not None
    return Key(key_id, tenant, scope, name, created_at, *others)


# --- validation ---


def _check_scope(scope: object) -> Scope:
    for known in SCOPES:
        if scope == known:
            return known
    raise ValueError(f"scope must be one of {', '.join(SCOPES)}")


def _check_length(name: str, text: str) -> str:
    if len(text) > _MAX_NAME_LENGTH:
        raise ValueError(f"{name} must have at most {_MAX_NAME_LENGTH} characters")
    return text


def _check_expiry(now: datetime, expires_at: datetime | None, ttl: timedelta | None) -> datetime | None:
    if ttl is not None and expires_at is not None:
        raise ValueError("give expires_at or ttl, not both")
    try:
        expiry = check_time("expires_at", expires_at) if ttl is None else now + ttl
    except OverflowError as error:
        raise ValueError("ttl must end before the year 10000") from error
    if expiry is not None and expiry <= now:
        raise ValueError("a key must expire in the future")
    return expiry
