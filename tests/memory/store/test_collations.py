"""Listings do not depend on the collation of the database."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.testing.contract import in_event_loop
from recollect.testing.servers.postgres import PostgresServer

from ...sessions.postgres.database import by, sql
from ..databases import Place


@pytest.fixture
def english_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A database that sorts as in English, with a locale that is made for it: few machines have one."""
    compiler = shutil.which("localedef")
    if compiler is None:
        pytest.skip("there is no localedef, which makes locales")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        made = subprocess.run(
            [compiler, "-i", "en_US", "-f", "UTF-8", f"{folder}/en_US.utf8"], capture_output=True
        )
        if made.returncode:
            pytest.skip("this machine does not have what locales are made of")
        monkeypatch.setenv("LOCPATH", folder)
        with PostgresServer() as server:
            sql(server.url, "CREATE DATABASE english TEMPLATE template0 LOCALE 'en_US.utf8'")
            yield Place(by("asyncpg", server.url.rpartition("/")[0] + "/english"), create_tables=True)


@pytest.mark.proof
@in_event_loop
async def test_conversations_are_listed_page_by_page_in_any_collation(english_place: Place) -> None:
    said = [{"role": "user", "content": "hello"}]
    async with english_place.open() as store:
        for name in ("a", "B", "\uffff", "~"):
            at = "2024-01-01T00:00:00Z"
            await store.record_conversation("desk", "ada", said, conversation_id=name, created_at=at)
        for scope in ((), ("desk", "ada")):
            found, before = [], None
            while page := await store.list_conversations(*scope, before=before, limit=1):
                found += [outline["conversation_id"] for outline in page]
                before = page[-1]["position"]
            assert sorted(found) == ["B", "a", "~", "\uffff"]
        assert len(await store.list_memories()) == 1
