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
    pages,
    runs,
    searches,
    sessions,
    threads,
    users,
)

# A request is compared with the routes in their order, so the most frequent ones come first.
ROUTERS = tuple(
    module.router
    for module in (
        searches,
        conversations,
        messages,
        conversation_details,
        branches,
        pages,
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
