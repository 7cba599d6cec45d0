"""Code as a user of the SDK would write it works, or the error says what to write instead."""

import importlib
import tomllib
from pathlib import Path
from typing import Any

import agents.extensions.memory
import pytest

import recollect
import recollect.extensions.memory
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


def test_an_unknown_name_is_no_attribute() -> None:
    assert not hasattr(recollect.extensions.memory, "NoSuchSession")
    assert set(dir(recollect.extensions.memory)) == set(recollect.extensions.memory.__all__)


def test_the_extras_of_the_sdk_that_bring_sessions_are_ours_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"sqlalchemy", "redis", "encrypt"} <= set(project["optional-dependencies"])
    assert project["optional-dependencies"]["sqlalchemy"] == ["recollect[postgres]"]


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
