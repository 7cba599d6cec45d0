"""Users, metadata, names and all agents of a user, in the terminal."""

import asyncio

from recollect.memory.store import MemoryStore

from .conftest import Run


def remember(run: Run, text: str, *more: str) -> None:
    assert run("remember", text, *more).code == 0


def test_users_are_listed(run: Run) -> None:
    remember(run, "Ada sails", "--user", "ada")
    remember(run, "Ada rows", "--user", "ada", "--agent", "coach")
    remember(run, "Bob sails", "--user", "bob")
    told = run("memory", "users", "--json").json
    assert {each["user_id"]: each["memory_count"] for each in told} == {"ada": 2, "bob": 1}
    shown = run("memory", "users").out
    assert shown.startswith("USER")
    assert "ada" in shown
    assert len(run("memory", "users", "--limit", "1", "--json").json) == 1


def test_where_there_are_no_users_it_says_so(run: Run) -> None:
    remember(run, "Ada sails", "--user", "ada")
    assert run("memory", "users", "--tenant", "other").told == "no users\n"


def test_metadata_is_kept_and_shown(run: Run) -> None:
    remember(run, "Ada sails", "--user", "ada", "--metadata", '{"form": 7}')
    (entry,) = run("memory", "show", "--user", "ada", "--json").json
    assert entry["metadata"] == {"form": 7}
    assert 'metadata {"form": 7}' in run("memory", "show", "--user", "ada").out
    for wrong in ("[]", "{", "7"):
        ended = run("remember", "Ada rows", "--user", "ada", "--metadata", wrong)
        assert (ended.code, "must be a JSON object" in ended.told) == (2, True)
    deep = '{"a": {"b": {"c": {"d": {"e": {}}}}}}'
    ended = run("remember", "Ada rows", "--user", "ada", "--metadata", deep)
    assert (ended.code, "nested deeper than 5 levels" in ended.told) == (1, True)


def test_all_agents_of_a_user_are_searched(run: Run) -> None:
    remember(run, "Ada sails a boat", "--user", "ada", "--agent", "coach")
    assert "boat" not in run("recall", "boat", "--user", "ada").out
    assert "Ada sails a boat" in run("recall", "boat", "--user", "ada", "--all-agents").out
    both = run("recall", "boat", "--user", "ada", "--agent", "coach", "--all-agents")
    assert (both.code, "cannot be used together" in both.told) == (2, True)


def test_who_said_something_is_named(run: Run) -> None:
    async def record() -> None:
        said = [{"role": "user", "name": "Maria", "content": "My boat is blue."}]
        async with MemoryStore("recollect.db", workers=0, embedder=None) as store:
            await store.record_conversation("assistant", "ada", said)

    asyncio.run(record())
    assert "Maria" in run("recall", "boat", "--user", "ada").out


def test_tags_are_kept_shown_and_searched(run: Run) -> None:
    remember(run, "Ada sails a boat", "--user", "ada", "--tag", "sport", "--tag", "sea")
    remember(run, "Ada paints a boat", "--user", "ada", "--tag", "art")
    entry, _ = run("memory", "show", "--user", "ada", "--json").json
    assert entry["tags"] == ["sport", "sea"]
    assert "tags sport, sea" in run("memory", "show", "--user", "ada").out
    found = run("recall", "boat", "--user", "ada", "--tag", "sea", "--tag", "sport", "--json").json
    assert [line["text"].partition(": ")[2] for line in found["lines"]] == ["Ada sails a boat"]
    unknown = run("recall", "boat", "--user", "ada", "--tag", "nope")
    assert "no conversation or entry of the user has the tag 'nope'" in unknown.told
    ended = run("remember", "Ada rows", "--user", "ada", "--tag", "x" * 65)
    assert (ended.code, "1 to 64 characters" in ended.told) == (1, True)


def test_a_search_is_narrowed_by_speaker_metadata_and_time(run: Run) -> None:
    async def record() -> None:
        said = [
            {"role": "user", "name": "Maria", "content": "My boat is blue."},
            {"role": "user", "name": "Bo", "content": "We sail the boat fast."},
            {"role": "assistant", "content": "A boat, how nice."},
        ]
        async with MemoryStore("recollect.db", workers=0, embedder=None) as store:
            await store.record_conversation(
                "assistant", "ada", said, metadata={"ticket": 17}, created_at="2024-05-07T10:00:00Z"
            )

    asyncio.run(record())

    def said(*filters: str) -> list[str]:
        found = run("recall", "boat", "--user", "ada", "--json", *filters).json
        return sorted(line["text"].strip('"').split()[-1] for line in found["lines"])

    assert said() == ["blue.", "fast.", "nice."]
    assert said("--name", "Bo") == ["fast."]
    assert said("--role", "user") == ["blue.", "fast."]
    assert said("--metadata", '{"ticket": 17}', "--role", "assistant") == ["nice."]
    assert said("--metadata", '{"ticket": 18}') == said("--until", "2024-04") == []
    assert said("--since", "2024-05", "--until", "2024-05-07", "--name", "Maria") == ["blue."]
    wrong = run("recall", "boat", "--user", "ada", "--since", "soon")
    assert (wrong.code, "--since: must be a date such as" in wrong.told) == (2, True)
