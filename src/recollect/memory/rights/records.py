"""Rows of tables as JSON objects of an export, and back: times with Z, no vectors, no internal columns."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from ...errors import ImportFormatError
from ...sql.columns import json_from_column, json_to_column, text_to_column, time_to_column
from ...sql.description import Column, Table
from ...sql.scripts import Row
from ..content_parts import attachments_to_column
from ..database.corruption import UNKNOWN_TIME, readable, stored_object, stored_text, stored_time, value_or
from ..database.quiet_period import BACKLOG
from ..entry import check_type
from ..metadata import metadata_to_column, read_metadata
from ..tags import read_tags, tags_from_column, tags_to_column
from ..times import format_time, read_date, read_time

_INTERNAL = {
    "tenant",
    "owner_key",
    "user_key",
    "text_key",
    "is_open",
    "learn_at",
    "next_position",
    "entries_stamp",
    "turns_stamp",
}
_VECTORS = {"content_vector", "vector_model", "vector_dimension"}
_ESCAPED = {"content_text", "slot", "wording", "content", "raw_response", "error"}
_LABELS = {"metadata", "tags"}
_DATES = {"valid_from", "valid_to"}
IS_WAITING = "is_waiting"
"""Whether a conversation has messages that are to be learned from. Older exports do not say it."""
LARGEST = 2**62  # of counters, with room to count on


def exported_columns(table: Table) -> tuple[str, ...]:
    """The names of the exported columns, in their order."""
    return tuple(column.name for column in _exported_columns(table))


def _exported_columns(table: Table) -> list[Column]:
    return [column for column in table.columns if column.name not in _INTERNAL | _VECTORS]


def select(table: Table) -> str:
    """A query for the exported columns, without its conditions."""
    return f"SELECT {', '.join(exported_columns(table))} FROM {table.name}"


def to_record(table: Table, row: Row) -> dict[str, Any]:
    """A row as a JSON object."""
    columns = zip(_exported_columns(table), row, strict=True)
    return {column.name: _to_json(column, value) for column, value in columns}


def to_records(table: Table, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as JSON objects. Corrupt rows are left out."""
    key = [exported_columns(table).index(name) for name in table.key]
    return readable(table.name, rows, partial(to_record, table), key)


def to_whole_record(table: Table, row: Row) -> dict[str, Any]:
    """The row of a memory or a conversation as a JSON object. A corrupt column is empty."""
    row_id = row[exported_columns(table).index(table.key[0])]
    return {
        column.name: value_or(table.name, row_id, partial(_to_json, column), value, _empty(column))
        for column, value in zip(_exported_columns(table), row, strict=True)
    }


def _empty(column: Column) -> Any:
    return format_time(UNKNOWN_TIME) if column.kind == "time" else None


def _to_json(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.kind == "time":
        return format_time(stored_time(value))
    if column.name == "tags":
        return list(tags_from_column(value))
    if column.kind == "json":
        return json_from_column(value) if column.name == "attachments" else stored_object(value)
    if column.name == "content_type":
        return check_type(value)
    return stored_text(value) if column.name in _ESCAPED else value


def to_row(table: Table, record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A row from its JSON object.

    An `ImportFormatError` names the invalid field. It does not quote the value.
    """
    if not isinstance(record, Mapping):
        raise ImportFormatError(f"{where} must be an object, not {type(record).__name__}")
    return {
        column.name: _to_stored(column, record.get(column.name), f"{column.name} of {where}")
        for column in _exported_columns(table)
    }


def read_learn_at(
    record: Mapping[str, Any], row: Mapping[str, Any], created_at: datetime, where: str
) -> float | None:
    """When the waiting messages of an exported conversation are due: in the backlog, by their time.

    Messages that were recorded not to be learned from do not wait. If the record does not say whether they
    wait, those without a run are due at once.
    """
    is_waiting = record.get(IS_WAITING)
    if is_waiting is not None and not isinstance(is_waiting, bool):
        raise ImportFormatError(f"{IS_WAITING} of {where} must be true or false")
    if row["waiting_from"] is None or is_waiting is False:
        return None
    return BACKLOG + created_at.timestamp() if is_waiting else 0.0


def _to_stored(column: Column, value: Any, where: str) -> Any:
    if value is None:
        if column.required:
            raise ImportFormatError(f"{where} is missing")
        return None
    if column.name in _LABELS:
        return _stored_label(column.name, value, where)
    if column.name == "attachments":
        return attachments_to_column(value)  # checked when the message was read
    if column.kind == "json":
        return _stored_object(value, where)
    if column.kind in ("text", "time"):
        return _stored_text(column, value, where)
    return _stored_number(column.kind, value, where)


def _stored_label(name: str, value: Any, where: str) -> str | None:
    try:
        if name == "tags":
            return tags_to_column(read_tags(where, value))
        return metadata_to_column(read_metadata(where, value))
    except (TypeError, ValueError) as error:
        raise ImportFormatError(str(error)) from error


def _stored_object(value: Any, where: str) -> str:
    if not isinstance(value, Mapping):
        raise ImportFormatError(f"{where} must be an object, not {type(value).__name__}")
    try:
        return json_to_column(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ImportFormatError(f"{where} must be a JSON object") from error


def _stored_text(column: Column, value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ImportFormatError(f"{where} must be a text, not {type(value).__name__}")
    if column.kind == "time":
        return time_to_column(_time(value, where))
    if column.name in _DATES:
        return _date(value, where)
    stored = text_to_column(value)
    if column.name not in _ESCAPED and stored != value:
        raise ImportFormatError(f"{where} has characters that an id cannot have")
    return stored


def _time(value: str, where: str) -> Any:
    try:
        return read_time(where, value)
    except ValueError as error:
        raise ImportFormatError(str(error)) from error


def _date(value: str, where: str) -> str:
    try:
        return read_date(where, value) or value
    except ValueError as error:
        raise ImportFormatError(str(error)) from error


def _stored_number(kind: str, value: Any, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
        raise ImportFormatError(f"{where} must be a number, not {type(value).__name__}")
    largest = LARGEST if kind == "integer" else 1
    if not 0 <= value <= largest:
        raise ImportFormatError(f"{where} must be from 0 to {largest}")
    return value
