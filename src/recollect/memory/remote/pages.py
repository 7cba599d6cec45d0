"""Reads the lists of the service, page by page."""

from typing import Any

from ...cursors import make_cursor
from ...service_client import ServiceClient
from ...sessions.settings import check_limit

_PAGE = 50  # rows; the service allows this many by default


def page_size(wanted: int | None) -> int | None:
    """The `limit` to send. A page of the default size is always allowed, so only a smaller one is named."""
    return wanted if wanted is not None and wanted < _PAGE else None


class RemoteList:
    """One list of the service. `cursor_kind` names its cursors."""

    def __init__(self, client: ServiceClient, path: str, cursor_kind: str) -> None:
        self._client = client
        self._path = path
        self._cursor_kind = cursor_kind

    async def read(
        self, limit: int | None, after: str | int | None = None, **query: Any
    ) -> list[dict[str, Any]]:
        """The first `limit` items after a position, or all of them."""
        most = check_limit(limit)
        cursor = None if after is None else make_cursor(self._cursor_kind, after)
        items: list[dict[str, Any]] = []
        while most is None or len(items) < most:
            size = page_size(None if most is None else most - len(items))
            page = await self._client.get(self._path, cursor=cursor, limit=size, **query)
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return items[:most]
