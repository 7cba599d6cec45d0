"""`ConversationManager`: long-term memory without `await`."""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recollect.errors import ConflictError
from recollect.memory.manager import ConversationManager
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop

from ..databases import Place
from ..pipeline.extractors import ScriptedExtractor
from ..threads import OwnThreads

SAID = [{"role": "user", "content": "I went to the zoo"}]
LONGEST = 20


def manager_at(place: Place, workers: int = 1) -> ConversationManager:
    return ConversationManager(place.url, extractor=ScriptedExtractor(), embedder=None, workers=workers)


def learn(manager: ConversationManager, user: str = "user") -> list[str]:
    manager.record_conversation(agent_id="agent", user_id=user, messages=SAID)
    manager.drain(LONGEST)
    memory = manager.get_memory("agent", user)
    assert memory is not None
    return memory.event_content


def test_it_learns_from_plain_code(shared_place: Place) -> None:
    with manager_at(shared_place) as manager:
        conversation = manager.record_conversation(agent_id="agent", user_id="user", messages=SAID)
        assert manager.drain(LONGEST) == Coverage(remembered=1)
        memory = manager.get_memory("agent", "user")
        assert memory is not None
        assert memory.event_content == ["I went to the zoo"]
        stored = manager.get_conversation(conversation.conversation_id)
        assert stored is not None
        assert stored.pipeline_result is not None


@in_event_loop
async def test_it_works_where_an_event_loop_is_running(shared_place: Place) -> None:
    with manager_at(shared_place) as manager:
        assert learn(manager) == ["I went to the zoo"]
        async with shared_place.open() as store:
            memory = await store.get_memory("agent", "user")
            assert memory == manager.get_memory("agent", "user")


def test_it_works_in_one_event_loop_after_another(file_place: Place) -> None:
    async def use(user: str) -> list[str]:
        return learn(manager, user)

    with manager_at(file_place) as manager:
        assert asyncio.run(use("a")) == asyncio.run(use("b")) == learn(manager, "c")


def test_several_threads_use_it_at_once(shared_place: Place) -> None:
    with manager_at(shared_place, workers=2) as manager, ThreadPoolExecutor(8) as threads:
        users = [f"u{number}" for number in range(16)]
        learned = list(threads.map(lambda user: learn(manager, user), users))
        assert learned == [["I went to the zoo"]] * 16
        assert manager.coverage() == Coverage(remembered=16)


def test_errors_are_those_of_the_store(file_place: Place) -> None:
    with manager_at(file_place, workers=0) as manager:
        with pytest.raises(ValueError, match="user_id must not be empty"):
            manager.record_conversation(agent_id="agent", user_id="", messages=SAID)
        with pytest.raises(ConflictError):
            manager.append_messages("unknown", SAID)
        manager.record_conversation(agent_id="agent", user_id="user", messages=SAID)
        with pytest.raises(TimeoutError):
            manager.drain(0.05)


def test_closing_ends_its_threads(file_place: Place) -> None:
    threads = OwnThreads()
    manager = manager_at(file_place)
    learn(manager)
    assert threads.now()
    manager.close()
    manager.close()
    assert threads.now() == []
    with pytest.raises(RuntimeError, match="is closed"):
        manager.coverage()


def test_the_default_is_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECOLLECT_URL", raising=False)
    with ConversationManager(workers=0) as manager:
        manager.record_conversation(agent_id="agent", user_id="user", messages=SAID)
    assert (tmp_path / "recollect.db").exists()


def test_the_environment_names_another_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_URL", f"sqlite:///{tmp_path}/folder/ours.db")
    with ConversationManager(workers=0) as manager:
        manager.record_conversation(agent_id="agent", user_id="user", messages=SAID)
    assert (tmp_path / "folder" / "ours.db").exists()
    assert not (tmp_path / "recollect.db").exists()


def exit_code_of_child(call: Callable[[], bool]) -> int:
    """Run a call in a fork of this process; 0 if it is true."""
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)  # rather than hang
        code = 1
        try:
            code = 0 if call() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_works_on_its_own(shared_place: Place) -> None:
    with manager_at(shared_place) as manager:
        learn(manager, "parent")
        assert exit_code_of_child(lambda: learn(manager, "child") == ["I went to the zoo"]) == 0
        assert learn(manager, "parent again") == ["I went to the zoo"]
        assert manager.coverage() == Coverage(remembered=3)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_may_close_what_it_has_not_used(file_place: Place) -> None:
    with manager_at(file_place) as manager:
        learn(manager)
        assert exit_code_of_child(lambda: manager.close() is None) == 0
        assert learn(manager, "parent again") == ["I went to the zoo"]
