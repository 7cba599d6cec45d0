"""Admits callers of the proxy while the database is away: their calls need it for memories only."""

import asyncio
import hashlib

from ...errors import StorageError
from ..problems import Problem
from .authentication import PROXY_KEY, Caller, authenticate
from .cache import ExpiringCache
from .keys import KeyStore

_HOW = f"Send an API key of Recollect as {PROXY_KEY}: rk_…"


class RecentCallers:
    """Authenticates callers. One that was admitted lately is admitted again if the database does not answer.

    A key that was found to be invalid is forgotten at once.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        self._callers: ExpiringCache[bytes, Caller] = ExpiringCache(seconds)
        self._patience = patience

    async def authenticate(self, keys: KeyStore, authorization: str | None) -> Caller:
        """The caller with this `Authorization` header, as `authentication.authenticate` finds it."""
        token = hashlib.sha256((authorization or "").encode("utf-8", "surrogatepass")).digest()
        recent = self._callers.get(token)
        try:
            async with asyncio.timeout(None if recent is None else self._patience):
                caller = await authenticate(keys, authorization, how=_HOW)
        except Problem:
            self._callers.remove(token)
            raise
        except (StorageError, TimeoutError):
            if recent is None:
                raise
            return recent
        self._callers.put(token, caller)
        return caller
