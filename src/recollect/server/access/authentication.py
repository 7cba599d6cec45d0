"""Who sends a request, and what they may do."""

from dataclasses import dataclass

from ..problems import Problem
from .keys import SCOPES, KeyStore, Scope

OPEN_TENANT = "default"
"""Whose data a service works with that runs open."""

_PREFIX = "rk_"


@dataclass(frozen=True)
class Caller:
    """Whoever sent a request: the tenant whose data they see, and what they may do with it."""

    tenant: str
    scope: Scope
    key_id: str | None
    """`None` where the service runs open."""

    def allows(self, scope: Scope) -> bool:
        """Whether they may do what needs a scope: each scope includes those before it."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)


async def authenticate(keys: KeyStore, authorization: str | None) -> Caller:
    """The caller with this `Authorization` header; raises a problem if it opens nothing.

    Where no key was ever made, everybody may do everything. A key of ours that is not known is refused even
    then: whoever shows one takes this for a service that knows it.
    """
    token = _token_of(authorization)
    if not (token or "").startswith(_PREFIX) and not await keys.any():
        return Caller(OPEN_TENANT, "admin", None)
    if token is None:
        raise _unauthenticated("send a key as Authorization: Bearer rk_…", "Bearer")
    key = await keys.verify(token)
    if key is None:
        raise _unauthenticated("this key is not valid", 'Bearer error="invalid_token"')
    return Caller(key.tenant, key.scope, key.key_id)


def _token_of(authorization: str | None) -> str | None:
    """What stands after `Bearer`; `None` if the header is missing or says something else."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip(" ") or None if scheme.lower() == "bearer" else None


def _unauthenticated(detail: str, challenge: str) -> Problem:
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})
