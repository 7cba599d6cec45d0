"""The HTTP routes, one module per resource."""

from ..dashboard import routes as dashboard
from . import (
    access,
    branches,
    chat,
    conversation_details,
    conversations,
    entries,
    imports,
    memories,
    messages,
    operations,
    runs,
    searches,
    sessions,
    threads,
    users,
)

ROUTERS = tuple(
    module.router
    for module in (
        conversations,
        messages,
        conversation_details,
        branches,
        searches,
        memories,
        entries,
        runs,
        chat,
        sessions,
        threads,
        users,
        imports,
        access,
        operations,
        dashboard,
    )
)
