"""Authentication: the caller of a request, and its scope."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..problems import Problem
from .keys import SCOPES, KeyStore, Scope

OPEN_TENANT = "default"
"""The tenant of all requests to a service without keys."""

PROXY_KEY = "X-Recollect-Key"
"""The header with our key in a proxied call, in which `Authorization` has the key of the provider."""

_PREFIX = "rk_"
_HOW = "Send an API key as Authorization: Bearer rk_…"
_LOST = (
    "The database has none of the API keys that were created for this service: it was replaced, or emptied."
    " Its operator has to restore it."
)


@dataclass(frozen=True)
class Caller:
    """The sender of a request: its tenant and its scope."""

    tenant: str
    scope: Scope
    key_id: str | None
    """`None` if the service runs without keys."""

    def allows(self, scope: Scope) -> bool:
        """Whether the caller has a scope. Each scope includes those before it."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)


async def authenticate(keys: KeyStore, authorization: str | None, *, how: str = _HOW) -> Caller:
    """The caller with this `Authorization` header. Raises a `Problem` if the key is missing or invalid.

    `how` says how to send a key.

    While keys are not required, every request has the scope admin. An unknown key of our format is refused
    even then: its sender expects a service that knows the key.
    """
    token = _token_of(authorization)
    if not (token or "").startswith(_PREFIX) and not await keys.are_required():
        return Caller(OPEN_TENANT, "admin", None)
    if token is None:
        raise _unauthenticated(how, "Bearer")
    key = await keys.verify(token)
    if key is None and await keys.are_lost():
        raise Problem("not_ready", _LOST)
    if key is None:
        raise _unauthenticated("The API key is not valid.", 'Bearer error="invalid_token"')
    return Caller(key.tenant, key.scope, key.key_id)


def is_our_key(value: str) -> bool:
    """Whether the value of a key header, with or without `Bearer`, is a key of this service."""
    return (_token_of(value) or value.strip(" ")).startswith(_PREFIX)


def proxy_authorization(headers: Mapping[str, str]) -> str | None:
    """The `Authorization` for us in a proxied call: `X-Recollect-Key`, or our key in the provider's place."""
    own = headers.get(PROXY_KEY, headers.get(PROXY_KEY.removeprefix("X-")))
    if own is not None:
        return f"Bearer {own}"
    for name in ("authorization", "x-api-key"):
        value = headers.get(name)
        if value is not None and is_our_key(value):
            return f"Bearer {_token_of(value) or value.strip(' ')}"
    return None


def _token_of(authorization: str | None) -> str | None:
    """The token after `Bearer`; `None` if the header is missing or has another scheme."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip(" ") or None if scheme.lower() == "bearer" else None


def _unauthenticated(detail: str, challenge: str) -> Problem:
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})
