"""`recollect remember`, `recall`, `forget` and `memory`."""

import asyncio
import re
from pathlib import Path

import pytest

from recollect import MemoryStore
from recollect.cli.database import DEFAULT_FILE
from recollect.memory.block import Line
from recollect.memory.store.store import default_url
from recollect.server.settings import DatabaseSettings

from .conftest import Run, learn


def remembered(run: Run, text: str, *more: str) -> str:
    told = run("remember", text, "--user", "ada", *more, "--json").json
    return str(told["content_id"])


def test_what_is_remembered_is_recalled_shown_explained_and_forgotten(run: Run) -> None:
    entry_id = remembered(run, "Ada is allergic to peanuts")
    found = run("recall", "what can she not eat? peanuts?", "--user", "ada", "--explain")
    assert entry_id in found.out
    assert "Ada is allergic to peanuts" in found.out
    assert re.search(rf"{entry_id}: 0\.\d\d = text 0\.\d\d", found.out)
    assert entry_id in run("memory", "show", "--user", "ada").out
    assert "added by a person" in run("memory", "why", entry_id).out
    assert run("forget", entry_id).out == "forgotten\n"
    assert run("recall", "peanuts", "--user", "ada").told == "nothing is known about this\n"
    for command in (("forget", entry_id), ("memory", "why", entry_id), ("memory", "history", entry_id)):
        ended = run(*command)
        assert (ended.code, ended.out) == (3, "")
        assert "no entry with this id" in ended.told


def test_what_is_known_already_is_not_written_twice(run: Run) -> None:
    entry_id = remembered(run, "Ada lives in Lisbon")
    again = run("remember", "Ada lives in Lisbon", "--user", "ada")
    assert again.out == f"remembered already as {entry_id}\n"
    assert len(run("memory", "show", "--user", "ada", "--json").json) == 1


def test_a_date_and_a_type_are_kept(run: Run) -> None:
    remembered(run, "Ada moved to Porto", "--type", "event", "--date", "2026-03")
    (entry,) = run("memory", "show", "--user", "ada", "--type", "event", "--json").json
    assert (entry["content_type"], entry["valid_from"]) == ("event", "2026-03")
    assert run("memory", "show", "--user", "ada", "--type", "mind", "--json").json == []
    wrong = run("remember", "Ada left", "--user", "ada", "--date", "in spring")
    assert (wrong.code, "--date: must be a date such as" in wrong.told) == (2, True)


def test_what_was_learned_is_told_with_what_was_said(run: Run) -> None:
    learn()
    entries = run("memory", "show", "--user", "ada", "--json").json
    lisbon = next(entry for entry in entries if "Lisbon" in entry["content_text"])
    why = run("memory", "why", lisbon["content_id"]).out
    assert "user said:\n    Hello! I live in Lisbon and I love pottery." in why
    assert "learned by offline, run " in why
    assert run("memory", "why", lisbon["content_id"], "--json").json["evidence"][0]["role"] == "user"
    assert "now" in run("memory", "history", lisbon["content_id"]).out


def test_recall_shows_the_lines_that_an_agent_is_given(run: Run) -> None:
    learn()
    question = ("recall", "Do I live in Lisbon?", "--user", "ada")

    async def block() -> list[Line]:
        async with MemoryStore("recollect.db", workers=0) as store:
            return list((await store.recall(question[1], "assistant", "ada")).lines)

    given = asyncio.run(block())
    assert given
    lines = run(*question, "--json").json["lines"]
    assert [(each["id"], each["text"]) for each in lines] == [(line.id, line.text) for line in given]
    assert all(each["time"] and each["reason"] == "relevant" and 0 < each["score"] <= 1 for each in lines)
    shown = run(*question).out
    assert all(line.id in shown and line.text in shown for line in given)
    assert [each["id"] for each in run(*question, "--limit", "1", "--json").json["lines"]] == [given[0].id]
    assert run(*question, "--type", "event", "--json").json["lines"] == []
    assert run(*question, "--min-score", "1", "--json").json["lines"] == []
    unknown = run("recall", "What is the capital of Mongolia?", "--user", "ada")
    assert (unknown.code, unknown.out) == (0, "")
    assert unknown.told.endswith("nothing is known about this\n")


def test_recall_shows_wishes_of_a_type(run: Run) -> None:
    wish = remembered(run, "Answer briefly", "--type", "instruction")
    remembered(run, "Ada lives in Lisbon")
    asked = ("recall", "where does Ada live?", "--user", "ada", "--json")
    assert len(run(*asked).json["lines"]) == 2
    (line,) = run(*asked, "--type", "instruction").json["lines"]
    assert (line["id"], line["kind"], line["reason"]) == (wish, "wish", "standing")


def test_memories_are_listed(run: Run) -> None:
    remembered(run, "Ada lives in Lisbon")
    (told,) = run("memory", "list", "--json").json
    assert (told["user_id"], told["agent_id"], told["counts"]["profile"]) == ("ada", "assistant", 1)
    assert "ada" in run("memory", "list", "--user", "ada").out
    assert run("memory", "list", "--user", "bob").told == "no memories\n"


def test_commands_and_stores_have_the_same_default() -> None:
    assert default_url() == DEFAULT_FILE == DatabaseSettings().url


def test_the_environment_says_whose_memory_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_USER", "eve")
    monkeypatch.setenv("RECOLLECT_AGENT", "guide")
    assert run("remember", "Eve sings").code == 0
    (told,) = run("memory", "list", "--json").json
    assert (told["user_id"], told["agent_id"]) == ("eve", "guide")


def test_a_tenant_sees_its_own_alone(run: Run) -> None:
    entry_id = remembered(run, "Ada lives in Lisbon", "--tenant", "acme")
    assert run("memory", "list", "--json").json == []
    assert run("forget", entry_id).code == 3
    assert run("forget", entry_id, "--tenant", "acme").code == 0


def test_a_configuration_says_where_and_with_what(run: Run, folder: Path) -> None:
    (folder / "r.toml").write_text('[database]\nurl = "named.db"\n[memory]\nembedder = "none"\n', "utf-8")
    assert run("remember", "Ada sings", "--user", "ada", "--config", "r.toml").code == 0
    assert (folder / "named.db").exists()
    assert not (folder / "recollect.db").exists()
    assert "Ada sings" in run("recall", "sings", "--user", "ada", "--config", "r.toml").out
    wrong = run("memory", "list", "--config", "missing.toml")
    assert (wrong.code, "missing.toml cannot be read" in wrong.told) == (1, True)


def test_texts_cannot_act_on_the_terminal(run: Run) -> None:
    entry_id = remembered(run, "Ada likes \x1b[31mred\x1b[0m \u202eand blue")
    for command in (("recall", "blue", "--user", "ada"), ("memory", "show", "--user", "ada")):
        shown = run(*command).out
        assert "\\x1b[31mred" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "\x1b" not in run("memory", "why", entry_id).out
    assert "\x1b" not in run("memory", "show", "--user", "ada", "--json").out


def test_an_entry_is_confirmed_and_rejected(run: Run) -> None:
    entry_id = remembered(run, "Ada plays golf")
    assert run("memory", "reject", entry_id).out == f"rejected {entry_id}\n"
    assert entry_id not in run("memory", "show", "--user", "ada").out
    shown = run("memory", "show", "--user", "ada", "--retired").out
    assert "rejected" in shown
    assert "rejected, trust 1.00" in run("memory", "why", entry_id).out
    assert run("memory", "confirm", entry_id, "--json").json["state"] == "current"
    assert run("memory", "confirm", "5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11").code == 3


def test_an_entry_expires_and_an_instruction_is_a_type(run: Run) -> None:
    entry_id = remembered(run, "Ada is in Rome", "--expires", "2020-05")
    remembered(run, "Answer in German.", "--type", "instruction")
    shown = run("memory", "show", "--user", "ada").out
    assert entry_id not in shown
    assert "instruction" in shown
    assert "until 2020-05-31" in run("memory", "show", "--user", "ada", "--retired").out
    assert run("remember", "Ada left", "--user", "ada", "--expires", "soon").code == 2
