"""In what SQLite and PostgreSQL differ, as far as long-term memory is concerned."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """Pieces of SQL that are not the same everywhere."""

    now: str
    """The time in seconds, by the database's clock, which all workers share."""
    skip_locked: str
    """What passes over rows that others are about to take."""
    lock: str
    """What keeps others from changing a row that was selected."""
    lock_but_not_its_key: str
    """The same, while others may still make rows that refer to it."""
    share: str
    """What keeps others from deleting a row that was selected."""
    each: str
    """The elements of a JSON array {} as rows with a column `value`."""
    joined: str
    """The values of a column {} as one text, with commas."""
    among: str
    """Compares with each value that the query {} gives, by an index, however many rows there may be."""
    field: str
    """The field {1} of a JSON object {0}, as text."""
    element: str
    """The element {1} of a JSON array {0}, as text."""
    time: str
    """A time {}, given as text by an expression, as columns of times hold it."""
    day: str
    """The day in UTC of a column of times {}, as text."""
    holds: str
    """Whether a text {0} is like the pattern {1}, in small letters of ASCII: capital ones count as those."""


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
    day="substr({}, 1, 10)",
    holds="{} LIKE {} ESCAPE '!'",
)
POSTGRESQL = Dialect(
    # Asked for once in a statement, so that an index can serve what is compared with it.
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
    day="to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    holds="lower({} COLLATE \"C\") LIKE {} ESCAPE '!'",
)


def dialect_of(name: str) -> Dialect:
    """The dialect of a database, by the name that SQLAlchemy has for it."""
    return POSTGRESQL if name == "postgresql" else SQLITE
