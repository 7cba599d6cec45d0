"""Sessions of several tenants in one table."""

from urllib.parse import quote

DEFAULT_TENANT = "default"
"""The tenant of programs that open the database themselves."""

_OF_TENANT = "tenant:"


def stored_id(tenant: str, session_id: str) -> str:
    """The id of a tenant's session in the database. No two tenants share one.

    Sessions of the default tenant have the same id as for a program that opens the database itself.
    """
    if tenant == DEFAULT_TENANT and not session_id.startswith(_OF_TENANT):
        return session_id
    return f"{_OF_TENANT}{quote(tenant, safe='')}/{session_id}"
