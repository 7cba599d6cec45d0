"""The routes, by what they are about."""

from ..dashboard import serving as dashboard
from . import (
    audit,
    branches,
    chat,
    conversation_memory,
    conversation_parts,
    conversations,
    entries,
    memories,
    messages,
    operations,
    runs,
    searches,
    usage,
    users,
)

ROUTERS = tuple(
    module.router
    for module in (
        conversations,
        messages,
        conversation_parts,
        branches,
        conversation_memory,
        searches,
        memories,
        entries,
        runs,
        chat,
        users,
        usage,
        audit,
        operations,
        dashboard,
    )
)
