"""The items of LangGraph's store among the lines of an export, for `recollect import`."""

import argparse
from collections.abc import AsyncIterator, Iterator, Sequence

from ..errors import ConflictError, ImportFormatError
from ..memory.rights.personal_data import DEFAULT_TENANT
from ..moving.records import STORE_ITEMS, ImportReport, Record, Skipped
from .database import resolve_new_url

_BATCH = 200  # items


class StoreItems:
    """Imports the items among records, a batch at a time. They belong to the default tenant."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.report = ImportReport()
        self._options = options

    async def take_from(self, records: Iterator[Record | Skipped]) -> AsyncIterator[Record | Skipped]:
        """The records without the items. An item that cannot be imported is reported in its place."""
        some: list[Record] = []
        for record in records:
            if isinstance(record, Skipped) or record.kind != STORE_ITEMS:
                yield record
                continue
            some.append(record)
            if len(some) == _BATCH:
                for lost in await self._import(some):
                    yield lost
                some = []
        for lost in await self._import(some):
            yield lost

    async def _import(self, some: Sequence[Record]) -> list[Skipped]:
        if not some:
            return []
        if (self._options.tenant or DEFAULT_TENANT) != DEFAULT_TENANT:
            reason = "only the default tenant can have items of the store"
            return [Skipped(each.where, reason) for each in some]
        try:
            return await self._write(some)
        except ImportError as error:  # LangGraph is not installed
            return [Skipped(each.where, str(error)) for each in some]

    async def _write(self, some: Sequence[Record]) -> list[Skipped]:
        """Write items at once, or one by one if one of them cannot be written."""
        from ..integrations.langgraph import Store, import_items

        async with Store(resolve_new_url(self._options)) as store:
            try:
                new = await import_items({STORE_ITEMS: [each.data for each in some]}, store)
            except (ConflictError, ImportFormatError) as error:
                if len(some) == 1:
                    return [Skipped(some[0].where, str(error))]
                return [lost for each in some for lost in await self._write([each])]
        self.report.added[STORE_ITEMS] += new
        self.report.existing[STORE_ITEMS] += len(some) - new
        return []
