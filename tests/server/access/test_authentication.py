"""Who sends a request: by their key, or anybody where none was ever made."""

import logging
import stat
from pathlib import Path

import pytest

from recollect.server.access.authentication import Caller, authenticate
from recollect.server.access.key_mark import mark_of
from recollect.server.access.keys import SCOPES, KeyStore, Scope
from recollect.server.problems import Problem
from recollect.testing.contract import in_event_loop

OPEN = Caller("default", "admin", None)


async def refusal(keys: KeyStore, header: str | None) -> Problem:
    with pytest.raises(Problem) as raised:
        await authenticate(keys, header)
    assert (raised.value.code, raised.value.status) == ("unauthenticated", 401)
    return raised.value


@pytest.mark.parametrize(
    ("scope", "allowed"), [("read", ["read"]), ("write", ["read", "write"]), ("admin", list(SCOPES))]
)
def test_a_scope_includes_those_before_it(scope: Scope, allowed: list[str]) -> None:
    assert [wanted for wanted in SCOPES if Caller("t", scope, "k").allows(wanted)] == allowed


@in_event_loop
async def test_a_key_says_who_calls() -> None:
    async with KeyStore(":memory:") as keys:
        key, text = await keys.create("acme", "write")
        expected = Caller("acme", "write", key.key_id)
        for header in (f"Bearer {text}", f"bearer {text}", f"BEARER  {text} "):
            assert await authenticate(keys, header) == expected


@in_event_loop
async def test_where_no_key_was_made_everybody_may_do_everything() -> None:
    async with KeyStore(":memory:") as keys:
        for header in (None, "", "Bearer", "Bearer sk-of-another-service", "Basic dTpw"):
            assert await authenticate(keys, header) == OPEN


@in_event_loop
async def test_a_key_of_ours_that_is_not_known_is_refused_even_then() -> None:
    async with KeyStore(":memory:") as keys:
        problem = await refusal(keys, f"Bearer rk_{'0' * 32}_{'0' * 64}")
        assert problem.headers == {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        await refusal(keys, "Bearer rk_nonsense")


@in_event_loop
async def test_once_a_key_was_made_everybody_needs_one() -> None:
    async with KeyStore(":memory:") as keys:
        assert await authenticate(keys, None) == OPEN
        key, text = await keys.create("acme", "read")
        for header in (None, "", "Bearer", "Bearer ", f"Basic {text}", text, f"Token {text}"):
            problem = await refusal(keys, header)
            assert problem.headers == {"WWW-Authenticate": "Bearer"}
        await keys.revoke(key.key_id)
        await refusal(keys, None)
        await refusal(keys, f"Bearer {text}")


@pytest.mark.parametrize("loss", ["vanished", "replaced"])
@in_event_loop
async def test_keys_are_required_after_the_file_with_them_is_lost(tmp_path: Path, loss: str) -> None:
    path = tmp_path / "recollect.db"
    async with KeyStore(path) as keys:
        _, text = await keys.create("acme", "read")
    lose(path, loss)
    async with KeyStore(path) as keys:  # a process that starts now
        await refusal(keys, None)
        for token in (text, "sk-of-another-service"):
            with pytest.raises(Problem) as raised:
                await authenticate(keys, f"Bearer {token}")
            assert (raised.value.code, raised.value.status) == ("not_ready", 503)
            assert "replaced, or emptied" in raised.value.detail
        assert await keys.are_lost()
        _, new = await keys.create("acme", "read")
        assert not await keys.are_lost()
        assert (await authenticate(keys, f"Bearer {new}")).tenant == "acme"
        await refusal(keys, f"Bearer {text}")


def lose(path: Path, loss: str) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        if file.suffix != ".keys":
            file.unlink()
    if loss == "replaced":
        path.touch()


@in_event_loop
async def test_a_mark_is_made_for_keys_that_were_made_without_one(tmp_path: Path) -> None:
    path = tmp_path / "recollect.db"
    mark = tmp_path / "recollect.db.keys"
    async with KeyStore(path) as keys:
        assert not await keys.any()
        assert not mark.exists()
        await keys.create("acme", "read")
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    mark.unlink()
    async with KeyStore(path) as keys:
        assert await keys.any()
    assert mark.exists()


@pytest.mark.parametrize(
    ("url", "mark"),
    [
        ("/x/a.db", "/x/a.db.keys"),
        ("sqlite:////x/a.db", "/x/a.db.keys"),
        ("sqlite+aiosqlite:////x/a.db?timeout=1", "/x/a.db.keys"),
        (":memory:", None),
        ("sqlite+aiosqlite://", None),
        ("postgresql://db/x", None),
    ],
)
def test_a_file_has_its_mark_beside_it(url: str, mark: str | None) -> None:
    assert mark_of(url) == (None if mark is None else Path(mark))


@in_event_loop
async def test_an_operator_decides_whether_keys_are_required(tmp_path: Path) -> None:
    path = tmp_path / "recollect.db"
    async with KeyStore(path, require_keys="always") as keys:
        await refusal(keys, None)
        _, text = await keys.create("acme", "read")
    async with KeyStore(path, require_keys="never") as keys:
        assert await authenticate(keys, None) == OPEN
        assert (await authenticate(keys, f"Bearer {text}")).tenant == "acme"
        await refusal(keys, "Bearer rk_nonsense")


@in_event_loop
async def test_what_is_wrong_with_a_key_is_not_told() -> None:
    async with KeyStore(":memory:") as keys:
        key, text = await keys.create("acme", "read")
        await keys.revoke(key.key_id)
        revoked = await refusal(keys, f"Bearer {text}")
        unknown = await refusal(keys, f"Bearer rk_{'0' * 32}_{'0' * 64}")
        garbage = await refusal(keys, "Bearer \ud800ä" + "x" * 100_000)
    assert revoked.document() == unknown.document() == garbage.document()


@in_event_loop
async def test_no_key_is_told_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with KeyStore(":memory:") as keys:
        _, text = await keys.create("acme", "read")
        wrong = text[:-4] + "beef"
        await authenticate(keys, f"Bearer {text}")
        problem = await refusal(keys, f"Bearer {wrong}")
    told = str(problem.document()) + str(problem.headers) + caplog.text
    assert text[-20:] not in told
    assert wrong[-20:] not in told
