"""The differences between SQLite and PostgreSQL in the SQL of long-term memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...sql.description import Table


@dataclass(frozen=True)
class Dialect:
    """Pieces of SQL that differ between databases."""

    now: str
    """The time in seconds by the clock of the database, which all workers share."""
    skip_locked: str
    """Lock the selected rows, and skip those that are locked."""
    lock: str
    """Lock the selected rows against changes."""
    lock_but_not_its_key: str
    """The same, but other transactions may insert rows that refer to them."""
    share: str
    """Lock the selected rows against deletion."""
    each: str
    """The elements of the JSON array {} as rows with a column `value`."""
    joined: str
    """The values of the column {} as one text, separated by commas."""
    among: str
    """A comparison with each value of the query {} that uses an index for any number of values."""
    field: str
    """The field {1} of a JSON object {0}, as text."""
    element: str
    """The element {1} of a JSON array {0}, as text."""
    time: str
    """The text {} as a value of a time column."""
    json: str
    """The text {} as a value of a JSON column."""
    seconds: str
    """The time column {} in seconds since 1970."""
    least: str
    """The lesser of the numbers {} and {}."""
    day: str
    """The day in UTC of the time column {}, as text."""
    changes_in_with: bool
    """Whether a `WITH` clause may change rows, so that one statement makes several changes."""
    holds: str
    """Whether the text {0} matches the pattern {1}, which is in lower case; ASCII case is ignored."""

    def among_listed(self, parameter: str) -> str:
        """A comparison with each element of a JSON array that uses an index for any number of them."""
        return self.among.format(f"SELECT value FROM {self.each.format(parameter)} AS wanted")


SQLITE = Dialect(
    now="((julianday('now') - 2440587.5) * 86400.0)",
    skip_locked="",
    lock="",
    lock_but_not_its_key="",
    share="",
    each="(SELECT value FROM json_each({}))",
    joined="group_concat({})",
    among="IN ({})",
    field="json_extract({}, '$.{}')",
    element="json_extract({}, '$[{}]')",
    time="{}",
    json="{}",
    seconds="((julianday({}) - 2440587.5) * 86400.0)",
    least="min({}, {})",
    day="substr({}, 1, 10)",
    changes_in_with=False,
    holds="{} LIKE {} ESCAPE '!'",
)
POSTGRESQL = Dialect(
    # A subquery is evaluated once per statement, so comparisons with it can use an index.
    now="(SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION))",
    skip_locked=" FOR UPDATE SKIP LOCKED",
    lock=" FOR UPDATE",
    lock_but_not_its_key=" FOR NO KEY UPDATE",
    share=" FOR KEY SHARE",
    each="(SELECT value FROM json_array_elements_text(CAST({} AS JSON)))",
    joined="string_agg(CAST({} AS VARCHAR), ',')",
    among="= ANY (ARRAY({}))",
    field="(CAST({} AS JSON) ->> '{}')",
    element="(CAST({} AS JSON) ->> {})",
    time="CAST({} AS TIMESTAMPTZ)",
    json="CAST({} AS JSONB)",
    seconds="CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION)",
    least="least({}, {})",
    day="to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    changes_in_with=True,
    holds="lower({} COLLATE \"C\") LIKE {} ESCAPE '!'",
)


def typed_parameters(dialect: Dialect, table: Table, names: Sequence[str], first: int) -> str:
    """Parameters from a number on, with the types of these columns, for a query that cannot infer them."""
    kinds = {column.name: column.kind for column in table.columns}
    types = {"time": dialect.time, "json": dialect.json, "integer": "CAST({} AS BIGINT)"}
    return ", ".join(
        types.get(kinds[name], "CAST({} AS VARCHAR)").format(f"?{number}")
        for number, name in enumerate(names, first)
    )


def dialect_of(name: str) -> Dialect:
    """The dialect of a database, by its name in SQLAlchemy."""
    return POSTGRESQL if name == "postgresql" else SQLITE
