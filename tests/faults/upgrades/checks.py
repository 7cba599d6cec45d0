"""What must hold of a database after an upgrade: nothing is lost, and it is as a new one would be."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from recollect.cli.database import find_damage
from recollect.migrations import current_revision, migrate, newest_revision

from . import contents
from .kept import (
    Rows,
    migrate_file,
    new_database,
    rows_in_database,
    rows_in_file,
    shape_of_database,
    shape_of_file,
    what_is_lost,
    what_is_not_told,
)
from .releases import Release


def damage_of(path: str) -> list[str]:
    """What is wrong with a file itself; empty if it is whole."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return find_damage(connection)
    except sqlite3.Error as error:
        return [f"it cannot be read: {error.sqlite_errorname}"]


async def shape_of_new_file(folder: Path) -> dict[str, Any]:
    """What a file looks like that today's code has made."""
    path = str(folder / "new.db")
    await migrate_file(path)
    return shape_of_file(path)


async def shape_of_new_database(server: str) -> dict[str, Any]:
    """What a database looks like that today's code has migrated from nothing."""
    with new_database(server) as url:
        await migrate(url)
        return shape_of_database(url)


async def wrong_with_file(release: Release, path: str, before: Rows, shape: dict[str, Any]) -> list[str]:
    """What does not hold of a file of a release that was migrated."""
    wrong = [f"damage: {line}" for line in damage_of(path)]
    wrong += [f"rows of {table} are not what they were" for table in what_is_lost(before, rows_in_file(path))]
    found = shape_of_file(path)
    wrong += [f"{name} has another shape" for name in shape | found if shape.get(name) != found.get(name)]
    today = await contents.read(path, list(release.features))
    return wrong + [f"{lost} is not told" for lost in what_is_not_told(release.manifest("sqlite"), today)]


async def wrong_with_database(release: Release, url: str, before: Rows, shape: dict[str, Any]) -> list[str]:
    """The same of a database on a server."""
    wrong = [] if await current_revision(url) == newest_revision() else ["it is not at the newest revision"]
    wrong += [
        f"rows of {table} are not what they were" for table in what_is_lost(before, rows_in_database(url))
    ]
    found = shape_of_database(url)
    wrong += [f"{name} has another shape" for name in shape | found if shape.get(name) != found.get(name)]
    today = await contents.read(url, list(release.features))
    return wrong + [f"{lost} is not told" for lost in what_is_not_told(release.manifest("postgres"), today)]
