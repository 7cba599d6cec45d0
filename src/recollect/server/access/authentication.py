"""Authentication: the caller of a request, and its scope."""

from dataclasses import dataclass

from ..problems import Problem
from .keys import SCOPES, KeyStore, Scope

OPEN_TENANT = "default"
"""The tenant of all requests to a service without keys."""

_PREFIX = "rk_"


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


async def authenticate(keys: KeyStore, authorization: str | None) -> Caller:
    """The caller with this `Authorization` header. Raises a `Problem` if the key is missing or invalid.

    Until the first key is created, every request has the scope admin. An unknown key of our format is refused
    even then: its sender expects a service that knows the key.
    """
    token = _token_of(authorization)
    if not (token or "").startswith(_PREFIX) and not await keys.any():
        return Caller(OPEN_TENANT, "admin", None)
    if token is None:
        raise _unauthenticated("Send an API key as Authorization: Bearer rk_…", "Bearer")
    key = await keys.verify(token)
    if key is None:
        raise _unauthenticated("The API key is not valid.", 'Bearer error="invalid_token"')
    return Caller(key.tenant, key.scope, key.key_id)


def _token_of(authorization: str | None) -> str | None:
    """The token after `Bearer`; `None` if the header is missing or has another scheme."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip(" ") or None if scheme.lower() == "bearer" else None


def _unauthenticated(detail: str, challenge: str) -> Problem:
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})
