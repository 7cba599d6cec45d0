"""The import of conversations and entries in bulk, from lines of any number."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request, Response
from starlette.requests import ClientDisconnect

from ...moving.importer import Importer
from ...moving.readers.lines import record_of
from ...moving.records import Record, Skipped
from ...moving.sources import decode
from ..dependencies import ServiceDep, WriteStore, make_router
from ..problems import Problem, translate_input_errors
from ..schemas import imports as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from ..transport.bodies import LINES

router = make_router("import")

_KINDS = ("conversations", "messages", "entries", "memories")
_LINE = (
    '{"kind": "conversations", "data": {"conversation_id": "import-1", "agent_id": "assistant",'
    ' "user_id": "ada", "messages": [{"role": "user", "content": "I live in Lisbon.",'
    ' "created_at": "2024-05-07T10:00:00Z"}]}}\n'
)
_BODY = {
    "required": True,
    "content": {name: {"schema": {"type": "string"}, "example": _LINE} for name in LINES},
}


@router.post(
    "/v1/import",
    operation_id="import",
    summary="Import conversations and entries",
    response_model=schemas.ImportResult,
    responses=problems("send"),
    openapi_extra={"requestBody": _BODY},
)
async def import_lines(
    query: Annotated[schemas.ImportQuery, Query()], request: Request, store: WriteStore, service: ServiceDep
) -> Response:
    """Import any number of lines, each an object with `kind` and `data`, as `recollect export` writes them.

    Original times are kept. The body is read as fast as it is written to the database. What is stored already
    is skipped: after an interruption, send the same body again. Lines that cannot be imported are listed, and
    the others are imported. An export as one JSON document is accepted if it is on one line. A body whose
    first line is neither is refused.
    """
    importer = Importer(store, agent_id=query.agent_id, user_id=query.user_id, learn=query.learn)
    longest = service.settings.server.max_body_bytes
    with translate_input_errors():
        try:
            report = await importer.run(_records(request, longest))
        except ClientDisconnect as error:
            raise Problem("invalid_json", "The connection ended before the body was complete.") from error
    return json_response(report.to_dict())


async def _records(request: Request, longest: int) -> AsyncIterator[Record | Skipped]:
    number, is_first = 0, True
    async for line in _lines(request, longest):
        number += 1
        where = f"line {number}"
        if line is None:
            yield Skipped(where, f"it is longer than {longest:,} bytes")
            continue
        for value in decode(where, line) if line.strip() else ():
            for record in record_of(value, is_first=is_first):
                yield record if isinstance(record, Skipped) or record.kind in _KINDS else _refuse(record)
            is_first = False


def _refuse(record: Record) -> Skipped:
    return Skipped(record.where, f"{record.kind} cannot be imported over HTTP: use the command line")


async def _lines(request: Request, longest: int) -> AsyncIterator[bytes | None]:
    """The lines of the body; `None` in place of one that is too long."""
    rest, is_too_long = bytearray(), False
    async for part in request.stream():
        *whole, tail = part.split(b"\n")
        for line in whole:
            rest += line
            yield None if is_too_long or len(rest) > longest else bytes(rest)
            rest, is_too_long = bytearray(), False
        rest += tail
        if len(rest) > longest:
            rest, is_too_long = bytearray(), True
    if rest or is_too_long:
        yield None if is_too_long else bytes(rest)
