"""`recollect keys`: makes keys that open, shows them once, and revokes them."""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.cli.keys import add_keys_parser
from recollect.server.access.audit import AuditEntry, AuditLog
from recollect.server.access.keys import Key, KeyStore
from recollect.testing.contract import in_event_loop

from .places import Place


class Ended(NamedTuple):
    code: int
    out: str
    told: str


class Command:
    """`recollect keys` on a database, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self._capsys = capsys
        self._url = url

    def __call__(self, *arguments: str) -> Ended:
        parser = argparse.ArgumentParser(prog="recollect")
        add_keys_parser(parser.add_subparsers())
        try:
            options = parser.parse_args(["keys", *arguments, "--url", self._url])
            code = options.run(options)
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *self._capsys.readouterr())


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "service.db")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], path: str) -> Command:
    return Command(capsys, path)


@in_event_loop
async def verify(url: str, text: str, found: list[Key | None]) -> None:
    async with KeyStore(url) as keys:
        found.append(await keys.verify(text))


def opened_by(url: str, text: str) -> Key | None:
    found: list[Key | None] = []
    verify(url, text, found)
    return found[0]


def test_a_key_is_shown_once_and_opens(shared_place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    command = Command(capsys, shared_place.url)
    made = command("create", "--tenant", "acme", "--scope", "write", "--name", "laptop")
    text = made.out.removesuffix("\n")
    assert made.code == 0
    assert "shown only once" in made.told
    assert text not in made.told
    key = opened_by(shared_place.url, text)
    assert key is not None
    assert (key.tenant, key.scope, key.name, key.expires_at) == ("acme", "write", "laptop", None)
    listed = command("list")
    assert key.key_id in listed.out
    assert text.rpartition("_")[2] not in listed.out + listed.told


def test_a_revoked_key_opens_nothing(command: Command, path: str) -> None:
    text = command("create", "--tenant", "acme", "--scope", "read").out.strip()
    key_id = text.split("_")[1]
    ended = command("revoke", key_id)
    assert (ended.code, ended.out) == (0, f"revoked {key_id}\n")
    assert opened_by(path, text) is None
    assert "revoked" in command("list").out


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("90d", timedelta(days=90)),
        ("12h", timedelta(hours=12)),
        ("2099-01-31", datetime(2099, 1, 31, tzinfo=UTC)),
        ("2099-01-31T12:00:00Z", datetime(2099, 1, 31, 12, tzinfo=UTC)),
        ("2099-01-31T12:00:00+02:00", datetime(2099, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_key_expires_when_that_was_said(
    command: Command, given: str, expected: timedelta | datetime
) -> None:
    before = datetime.now(UTC)
    made = command("create", "--tenant", "a", "--scope", "read", "--expires", given, "--json")
    after = datetime.now(UTC)
    expires_at = datetime.fromisoformat(json.loads(made.out)["expires_at"])
    if isinstance(expected, datetime):
        assert expires_at == expected
    else:
        assert before + expected <= expires_at <= after + expected
    assert "valid until" in command("list").out


def test_json_has_the_key_once_and_otherwise_only_what_may_be_shown(command: Command) -> None:
    made = json.loads(command("create", "--tenant", "a", "--scope", "admin", "--json").out)
    secret = made.pop("key").rpartition("_")[2]
    listed = command("list", "--tenant", "a", "--json").out
    assert json.loads(listed) == [made]
    revoked = json.loads(command("revoke", made["key_id"], "--json").out)
    assert revoked["revoked_at"] is not None
    assert {**revoked, "revoked_at": None} == made
    assert secret not in listed


@in_event_loop
async def make_tables(path: str) -> None:
    async with KeyStore(path) as keys:
        await keys.any()


def test_a_list_can_be_of_one_tenant_and_may_be_empty(command: Command, path: str) -> None:
    make_tables(path)
    empty = command("list")
    assert (empty.code, empty.out, empty.told) == (0, "", "no keys\n")
    assert command("list", "--json").out == "[]\n"
    for tenant in ("a", "b"):
        command("create", "--tenant", tenant, "--scope", "read")
    assert len(command("list").out.splitlines()) == 3
    assert len(command("list", "--tenant", "b").out.splitlines()) == 2


def test_a_name_cannot_draw_on_the_terminal(command: Command) -> None:
    command("create", "--tenant", "a", "--scope", "read", "--name", "\x1b[2Jx")
    assert "\x1b" not in command("list").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "--tenant", "a"], "--scope"),
        (["create", "--tenant", "a", "--scope", "root"], "read"),
        (["create", "--tenant", "a", "--scope", "read", "--expires", "soon"], "must look like 90d"),
        (["create", "--tenant", "a", "--scope", "read", "--expires", "0d"], "in the future"),
        (["create", "--tenant", "a", "--scope", "read", "--expires", "999999d999"], "must look like 90d"),
        (["create", "--tenant", "a", "--scope", "read", "--expires", "2020-01-01"], "in the future"),
        (["create", "--tenant", "a", "--scope", "read", "--expires", "0001-01-01T00:00+14:00"], "future"),
        (["revoke"], "KEY_ID"),
        (["revoke", "1"], "32 hexadecimal digits"),
    ],
)
def test_wrong_arguments_say_what_would_be_right(
    command: Command, arguments: list[str], said: str, path: str
) -> None:
    ended = command(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.told
    assert not Path(path).exists()


def test_a_key_given_for_its_id_is_not_repeated(command: Command) -> None:
    text = command("create", "--tenant", "a", "--scope", "read").out.strip()
    ended = command("revoke", text)
    assert ended.code == 2
    assert "not the key" in ended.told
    assert text.rpartition("_")[2] not in ended.told


def test_an_unknown_id_is_said_to_be_unknown(command: Command, path: str) -> None:
    make_tables(path)
    with pytest.raises(ValueError, match="no key with this id"):
        command("revoke", "0" * 32)


def test_a_key_is_made_where_the_service_is_configured_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration, path = tmp_path / "service.toml", tmp_path / "configured.db"
    configuration.write_text(f'[database]\nurl = "{path}"\n')
    parser = argparse.ArgumentParser(prog="recollect")
    add_keys_parser(parser.add_subparsers())
    options = parser.parse_args(
        ["keys", "create", "--tenant", "a", "--scope", "read", "--config", str(configuration)]
    )
    assert options.run(options) == 0
    assert opened_by(str(path), capsys.readouterr().out.strip()) is not None


def test_the_command_is_there_and_takes_the_database_of_the_environment(tmp_path: Path) -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "recollect", "keys", *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={"RECOLLECT_URL": "own.db"},
        )  # fmt: skip

    made = run("create", "--tenant", "a", "--scope", "read")
    assert made.returncode == 0, made.stderr
    assert opened_by(str(tmp_path / "own.db"), made.stdout.strip()) is not None
    unknown = run("revoke", "0" * 32)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("recollect: no key with this id")


# --- the audit log ---


@in_event_loop
async def read_audit(url: str, tenant: str, found: list[AuditEntry]) -> None:
    async with AuditLog(url) as log:
        found += await log.list(tenant)


def test_making_and_revoking_a_key_is_in_the_audit_log_of_its_tenant(command: Command, path: str) -> None:
    made = json.loads(command("create", "--tenant", "acme", "--scope", "read", "--json").out)
    command("create", "--tenant", "other", "--scope", "read")
    command("list")
    assert command("revoke", made["key_id"]).code == 0
    found: list[AuditEntry] = []
    read_audit(path, "acme", found)
    target = f"key:{made['key_id']}"
    assert [(entry.action, entry.target) for entry in found] == [
        ("keys.revoke", target),
        ("keys.create", target),
    ]
    assert made["key"] not in str(found)
