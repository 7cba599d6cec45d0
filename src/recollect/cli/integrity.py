"""Whether a SQLite file is whole."""

import re
import sqlite3

_ALL = 1_000_000_000  # complaints: else the first hundred would hide what comes after them
_NULL = re.compile(r"NULL value in (\S+)\.(\S+)")


def damage_in(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with a database; empty if it is whole."""
    told = {str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_ALL})")}
    return sorted(line for line in told - {"ok"} if not _is_mistaken(connection, line))


def _is_mistaken(connection: sqlite3.Connection, line: str) -> bool:
    """SQLite 3.40 takes columns of tables without row ids for others, and sees NULL where there is none."""
    found = _NULL.fullmatch(line)
    if found is None:
        return False
    query = f'SELECT count(*) FROM "{found[1]}" WHERE "{found[2]}" IS NULL'
    return bool(connection.execute(query).fetchone() == (0,))
