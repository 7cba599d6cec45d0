"""Rows as JSON tells them in an export, and back: times with Z, texts and objects as such, no vectors."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ...errors import ImportFormatError
from ...sessions.sql.columns import text_to_column, time_to_column
from ...sessions.sql.description import Column, Table
from ...sessions.sql.scripts import Row
from ..database.corrupt import UNKNOWN_TIME, readable, stored_object, stored_text, stored_time, value_or
from ..entry import check_type
from ..times import read_date, read_time, tell_time

_OURS = {
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
_OBJECTS = {"content_data", "pipeline_result", "result", "memory_strategy"}
_ESCAPED = {
    "memory_strategy",
    "content_text",
    "slot",
    "wording",
    "content",
    "pipeline_result",
    "raw_response",
    "error",
}
_DATES = {"valid_from", "valid_to"}
LARGEST = 2**62  # with room for what is counted on from there


def told_columns(table: Table) -> tuple[str, ...]:
    """The columns that are exported, in their order."""
    return tuple(name for name in table.column_names if name not in _OURS | _VECTORS)


def select(table: Table) -> str:
    """The beginning of a query for them."""
    return f"SELECT {', '.join(told_columns(table))} FROM {table.name}"


def to_record(table: Table, row: Row) -> dict[str, Any]:
    """A row as JSON tells it."""
    return {name: _told(name, value) for name, value in zip(told_columns(table), row, strict=True)}


def to_records(table: Table, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as JSON tells them, without corrupt ones."""
    key = [told_columns(table).index(name) for name in table.key]
    return readable(table.name, rows, partial(to_record, table), key)


def to_whole_record(table: Table, row: Row) -> dict[str, Any]:
    """A row that holds others as JSON tells it: a corrupt column is empty."""
    row_id = row[told_columns(table).index(table.key[0])]
    return {
        name: value_or(table.name, row_id, partial(_told, name), value, _empty(name))
        for name, value in zip(told_columns(table), row, strict=True)
    }


def _empty(name: str) -> Any:
    return tell_time(UNKNOWN_TIME) if name.endswith("_at") else None


def _told(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name.endswith("_at"):
        return tell_time(stored_time(value))
    if name == "content_type":
        return check_type(value)
    if name in _OBJECTS:
        return stored_object(value)
    return stored_text(value) if name in _ESCAPED else value


def to_row(table: Table, record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A row from its JSON; an `ImportFormatError` says where it is not as it should be, not what it says."""
    if not isinstance(record, Mapping):
        raise ImportFormatError(f"{where} must be an object, not {type(record).__name__}")
    told = set(told_columns(table))
    return {
        column.name: _stored(column, record.get(column.name), f"{column.name} of {where}")
        for column in table.columns
        if column.name in told
    }


def _stored(column: Column, value: Any, where: str) -> Any:
    if value is None:
        if column.required:
            raise ImportFormatError(f"{where} is missing")
        return None
    if column.name in _OBJECTS:
        return _stored_object(value, where)
    if column.kind == "text":
        return _stored_text(column.name, value, where)
    return _stored_number(column.kind, value, where)


def _stored_object(value: Any, where: str) -> str:
    if not isinstance(value, Mapping):
        raise ImportFormatError(f"{where} must be an object, not {type(value).__name__}")
    try:
        return text_to_column(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ImportFormatError(f"{where} must be an object as JSON has it") from error


def _stored_text(name: str, value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ImportFormatError(f"{where} must be a text, not {type(value).__name__}")
    if name.endswith("_at"):
        return time_to_column(_time(value, where))
    if name in _DATES:
        return _date(value, where)
    stored = text_to_column(value)
    if name not in _ESCAPED and stored != value:
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
