"""`recollect doctor`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from recollect.cli.doctor.checks import EXTRAS
from recollect.server.access.keys import KeyStore

from .conftest import Run, learn

ROOT = Path(__file__).parents[2]


def found(run: Run, *arguments: str) -> dict[str, dict[str, Any]]:
    ended = run("doctor", "--json", *arguments)
    told = ended.json
    assert ended.code == (0 if told["ok"] else 1)
    return {check["name"]: check for check in told["checks"]}


def configuration(folder: Path, text: str) -> str:
    (folder / "r.toml").write_text(text, "utf-8")
    return str(folder / "r.toml")


def test_on_a_machine_where_nothing_was_done_all_is_well_and_nothing_is_made(run: Run, folder: Path) -> None:
    checks = found(run)
    assert all(check["state"] != "wrong" for check in checks.values())
    assert checks["database"]["state"] == "off"
    assert "512 dimensions" in checks["embedder"]["found"]
    assert list(folder.iterdir()) == []


def test_a_database_in_use_is_looked_at(run: Run, folder: Path) -> None:
    learn()
    (folder / "recollect.db").chmod(0o644)
    checks = found(run)
    assert "intact" in checks["database"]["found"]
    assert checks["learning"]["found"] == "1 conversation remembered, 0 pending, 0 failed"
    assert checks["permissions"]["fix"].startswith("chmod 600 recollect.db")
    said = run("doctor")
    assert "→ chmod 600 recollect.db" in said.out
    assert said.told == "all checks passed\n"


def test_what_is_no_database_is_wrong(run: Run, folder: Path) -> None:
    (folder / "recollect.db").write_text("This is no database. " * 100)
    ended = run("doctor")
    assert ended.code == 1
    assert "✗ database" in ended.out
    assert "a check failed" in ended.told


def test_a_configuration_that_cannot_be_read_is_wrong(run: Run, folder: Path) -> None:
    checks = found(run, "--config", configuration(folder, "[server]\nport = -1"))
    assert checks["configuration"]["state"] == "wrong"
    assert "server.port" in checks["configuration"]["found"]


def test_variables_are_told_by_their_names_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_CHAT__API_KEY", "sk-secret")
    ended = run("doctor")
    assert "RECOLLECT_CHAT__API_KEY" in ended.out
    assert "sk-secret" not in ended.out


def test_an_address_for_others_needs_keys(run: Run, folder: Path) -> None:
    learn()
    config = configuration(folder, '[server]\nhost = "0.0.0.0"\nport = 1\n[memory]\nembedder = "none"\n')
    checks = found(run, "--config", config)
    assert (checks["keys"]["state"], checks["embedder"]["state"]) == ("wrong", "off")
    assert "recollect keys create" in checks["keys"]["fix"]

    async def make() -> None:
        async with KeyStore("recollect.db") as keys:
            await keys.create("acme", "read")

    asyncio.run(make())
    assert found(run, "--config", config)["keys"]["found"] == "1 valid key"


def test_a_model_without_its_key_is_wrong(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = configuration(folder, '[memory]\nextractor = "openai:gpt"\nembedder = "openai:small"\n')
    checks = found(run, "--config", config)
    assert (checks["model"]["state"], checks["model"]["fix"]) == ("wrong", "set OPENAI_API_KEY")
    assert (checks["embedder"]["state"], "OPENAI_API_KEY" in checks["embedder"]["fix"]) == ("wrong", True)


def test_a_server_that_is_not_there_is_wrong_and_no_password_is_told(run: Run) -> None:
    ended = run("doctor", "--url", "postgresql://ada:secret@127.0.0.1:1/x", "--json")
    assert ended.code == 1
    assert "secret" not in ended.out
    (database,) = [check for check in ended.json["checks"] if check["name"] == "database"]
    assert "no connection can be made" in database["found"]


def test_a_server_without_tables_is_to_be_migrated(run: Run, empty_database: str) -> None:
    assert found(run, "--url", empty_database)["database"]["fix"] == "run `recollect migrate`"
    assert run("migrate", "--url", empty_database, "--json").json["before"] is None
    checks = found(run, "--url", empty_database)
    assert (checks["database"]["state"], checks["keys"]["state"]) == ("ok", "off")


def test_every_extra_is_looked_for() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all", "sqlalchemy"}
