"""The same commands on PostgreSQL, and with no more than the base install."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run, learn

OF_EXTRAS = ["pydantic", "fastapi", "sqlalchemy", "alembic", "agents", "openai", "mcp", "uvicorn"]


def test_everything_works_on_postgresql(
    run: Run, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_URL", empty_database)
    early = run("memory", "list")
    assert (early.code, "migrat" in early.told) == (1, True)
    assert run("migrate").code == 0
    learn(empty_database)
    entry_id = run("remember", "Ada plays chess", "--user", "ada", "--json").json["content_id"]
    assert "Ada plays chess" in run("recall", "chess", "--user", "ada").out
    assert run("memory", "why", entry_id).code == 0
    assert run("sessions", "list", "--json").json == []
    assert run("sessions", "list", "--chats", "--json").json == []
    assert run("runs", "list", "--json").json["coverage"]["remembered"] == 1
    assert run("export", "--user", "ada", "--output", "ada.jsonl").code == 0
    assert run("erase", "--user", "ada", "--yes", "--json").json["counts"]["conversations"] == 1
    assert run("import", "ada.jsonl", "--json").json["added"]["conversations"] == 1
    assert run("forget", entry_id).code == 0


def test_the_base_install_is_enough(run: Run, folder: Path) -> None:
    learn()
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({OF_EXTRAS}))\n"  # not to be had
        "from recollect.cli import main\n"
        "for line in sys.stdin: print(main(line.split()), file=sys.stderr)"
    )
    commands = [
        "remember chess --user ada --json",
        "recall chess --user ada --json",
        "memory list --json",
        "sessions list --json",
        "export --user ada --output ada.jsonl",
        "backup copy.db",
        "runs list --json",
        "doctor",
        "mcp --user ada",
    ]
    ended = subprocess.run(
        [sys.executable, "-c", script], input="\n".join(commands), capture_output=True, text=True, check=True
    )
    codes = [line for line in ended.stderr.splitlines() if line.isdecimal()]
    assert codes == ["0"] * 8 + ["1"], ended.stderr
    assert "pip install 'recollect-memory[mcp]'" in ended.stderr
    assert json.loads((folder / "ada.jsonl").read_text().splitlines()[0])["user_id"] == "ada"
    assert run("memory", "list", "--url", "copy.db").code == 0
