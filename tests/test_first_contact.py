"""Code as a user of the SDK would write it works, or the error says what to write instead."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import agents.extensions.memory
import agents.memory
import pytest
from openai import AsyncOpenAI

import recollect
import recollect.extensions.memory
import recollect.memory
from recollect import (
    InMemorySession,
    OpenAIAgentProvider,
    RedisSession,
    StrategySession,
    Trim,
    build_openai_provider,
)
from recollect.testing.contract import in_event_loop

ROOT = Path(__file__).parent.parent


# --- imports ---


def test_every_session_of_the_sdks_extensions_is_here_or_is_explained() -> None:
    for name in agents.extensions.memory.__all__:
        if name in recollect.extensions.memory.__all__:
            assert getattr(recollect.extensions.memory, name) is getattr(recollect, name)
        else:
            with pytest.raises(ImportError, match=rf"no {name}: import it from agents\.extensions\.memory"):
                importlib.import_module("recollect.extensions.memory").__getattr__(name)


def test_every_name_of_the_sdks_memory_is_in_ours() -> None:
    seeds = {"TResponseInputItem", "start_openai_conversations_session"}
    assert {*agents.memory.__all__, *seeds} == set(recollect.memory.__all__)
    for name in recollect.memory.__all__:
        found = getattr(recollect.memory, name)
        assert found is getattr(recollect, name, getattr(agents.memory, name, None))
    assert not hasattr(recollect.memory, "NoSuchSession")


def test_importing_the_memory_package_loads_no_session() -> None:
    script = "import sys, recollect.memory; print([name for name in sys.modules if 'recollect.' in name])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "['recollect.memory']\n"


@in_event_loop
async def test_the_compaction_of_the_sdk_wraps_our_session() -> None:
    wrapped = recollect.SQLiteSession("s")
    session = recollect.memory.OpenAIResponsesCompactionSession(
        "s", wrapped, client=AsyncOpenAI(api_key="none")
    )
    await session.add_items([{"role": "user", "content": "hello"}])
    assert await wrapped.get_items() == await session.get_items() == [{"role": "user", "content": "hello"}]
    wrapped.close()


def test_the_move_page_names_every_session_of_the_sdk() -> None:
    page = (ROOT / "docs" / "how-to" / "move-from-the-sdk.md").read_text("utf-8")
    names = [name for module in (agents.memory, agents.extensions.memory) for name in module.__all__]
    classes = [name for name in names if name.endswith("Session") and name[0].isupper()]
    abstract = {"Session", "OpenAIResponsesCompactionAwareSession"}
    assert [name for name in classes if f"`{name}`" not in page and name not in abstract] == []


def test_an_unknown_name_is_no_attribute() -> None:
    assert not hasattr(recollect.extensions.memory, "NoSuchSession")
    assert set(dir(recollect.extensions.memory)) == set(recollect.extensions.memory.__all__)


def test_the_extras_of_the_sdk_that_bring_sessions_are_ours_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"sqlalchemy", "redis", "encrypt"} <= set(project["optional-dependencies"])
    assert project["optional-dependencies"]["sqlalchemy"] == ["recollect-memory[postgres]"]


# --- arguments ---


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("id", "redis://user:secret@127.0.0.1"), {}),
        (("id",), {}),
        (("id",), {"redis_client": "redis://user:secret@127.0.0.1"}),
    ],
)
def test_a_redis_url_in_the_constructor_leads_to_from_url(
    arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"RedisSession\.from_url\(session_id, url=…\)") as error:
        RedisSession(*arguments, **options)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("mode", ["trim", "TRIM", "Trim"])
def test_a_strategy_session_takes_a_configuration(mode: str) -> None:
    session = StrategySession(InMemorySession("s"), {"mode": mode, "max_user_turns": 4})
    assert session.strategy == Trim(4)


def test_a_strategy_session_says_what_is_wrong_with_a_configuration() -> None:
    with pytest.raises(ValueError, match="mode must be one of"):
        StrategySession(InMemorySession("s"), {"mode": "shrink"})
    with pytest.raises(TypeError, match="memory_strategy must be an object"):
        StrategySession(InMemorySession("s"), 7)  # type: ignore[arg-type]


# --- the provider ---


@in_event_loop
async def test_the_names_of_the_provider_come_from_the_package(tmp_path: Path) -> None:
    provider = build_openai_provider(str(tmp_path / "chats.db"))
    assert isinstance(provider, OpenAIAgentProvider)
    assert [each.name for each in provider.agents()] != []
    await provider.aclose()


def test_there_is_one_session_manager() -> None:
    from recollect.providers.openai import sessions

    assert not hasattr(sessions, "SessionManager")
    assert recollect.SessionManager.__module__ == "recollect.sessions.manager"
