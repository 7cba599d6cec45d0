"""The demo: an agent talks, its process ends, and another process continues the conversation.

The agent runs in the real Runner of the Agents SDK. Its model is a script that needs no key. It answers only
from the history in the request, so everything it knows comes from the session.
"""

import asyncio
import getpass
import multiprocessing
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtraError
from ...extras import require_extra
from ...items import estimate_tokens, split_turns, text_of
from ...sessions.history import items_to_messages
from ...sessions.sqlite import SQLiteSession

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from agents import Agent
    from agents.testing import ModelCall

_SESSION = "demo"
_LONG = "long"  # the part with the longer conversation
_CONVERSATIONS = (
    ("Hello! My name is Ada and I live in Lisbon.", "What should I wear today?"),
    ("Do you still know who I am?", "I started a pottery class yesterday, and I love it.", "Thank you!"),
)
_PARTS = (_LONG, *map(str, range(len(_CONVERSATIONS))))
# What the last part needs. The demo loads it while the other parts run.
_LEARNING = (
    "recollect.cli.demo.entries",
    "recollect.memory.offline",
    "recollect.memory.pipeline.workers",
    "recollect.memory.search.embedders.encoder",
)
_NEXT = """
What to try next
  In your own app, change one import; your database file stays as it is:
      - from agents import SQLiteSession
      + from recollect import SQLiteSession
  Shorten what the model sees:
      session = StrategySession(session, Compact(trigger_turns=8))
  Learn about your users:
      ConversationManager().record_conversation(agent_id=…, user_id=…, messages=[…])
  Learn more about sessions:    docs/tutorial.md
  Compare with the SDK's own:   make bench

See the conversation, what was learned and why, and search, in your browser:
      {command} serve --url {path}
      then open http://127.0.0.1:8765/
"""


def run_demo() -> int:
    """Run both conversations, each in its own process, and show what was stored."""
    if find_spec("agents") is None:
        raise MissingExtraError("the demo", "agents")
    path = _fresh_file()
    with _run_beside(path):
        for name in _LEARNING:
            import_module(name)
    asyncio.run(_show_stored(path))
    command = Path(sys.executable).with_name("recollect")
    print(_NEXT.format(command=command if command.exists() else "recollect", path=path), end="")
    return 0


@contextmanager
def _run_beside(path: Path) -> Iterator[None]:
    """Run the parts with an agent while the block runs, and wait for their end.

    On Linux, one process imports the SDK, which takes seconds, and each part is a fork of it.
    """
    if sys.platform != "linux" or threading.active_count() > 1:  # a fork has none of the threads
        yield
        for part in _PARTS:
            subprocess.run([sys.executable, "-m", __name__, part, str(path)], check=True)
        return
    running = _fork(_run_parts, path)
    yield
    _wait_for(running, "the parts with an agent")


def _run_parts(path: Path) -> None:
    require_extra("agents", "agents.testing", "the demo")
    for part in _PARTS:
        _wait_for(_fork(_run_part, part, path), f"part {part} of the demo")


def _fork(target: Callable[..., None], *arguments: Any) -> "ForkProcess":
    sys.stdout.flush()
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    return process


def _wait_for(process: "ForkProcess", what: str) -> None:
    process.join()
    if process.exitcode:
        raise subprocess.CalledProcessError(process.exitcode, what)


def _run_part(part: str, path: Path) -> None:
    if part == _LONG:
        from .strategies import show_long_conversation

        show_long_conversation()
    else:
        asyncio.run(_converse(int(part), path))
    sys.stdout.flush()


def _fresh_file() -> Path:
    """Return the path of a new database. It stays after the demo; the previous one is deleted."""
    folder = Path(tempfile.gettempdir()) / f"recollect-demo-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.glob("demo.db*"):
        left.unlink()
    return folder / "demo.db"


async def _show_stored(path: Path) -> None:
    from .entries import show_learned

    async with SQLiteSession(_SESSION, path) as session:
        items = await session.get_items()
    turns = len(split_turns(items)) - 1
    print(
        f"\nStored in {path.name}: {len(items)} items, {turns} turns, about {estimate_tokens(items)} tokens"
    )
    for message in items_to_messages(items):
        print(f"  {message['role']:>9}  {message['content']}")
    await show_learned(path, items)


async def _converse(number: int, path: Path) -> None:
    """Run the part of the conversation that belongs to one process."""
    from agents import Runner, set_tracing_disabled

    set_tracing_disabled(True)
    agent = _agent()
    async with SQLiteSession(_SESSION, path) as session:
        known = len(await session.get_items())
        print(f"\n--- Process {number + 1} starts; the session holds {known} items ---")
        for said in _CONVERSATIONS[number]:
            print(f"you    {said}")
            result = await Runner.run(agent, said, session=session)
            print(f"agent  {result.final_output}")
    print(f"--- Process {number + 1} ends ---")


def _agent() -> "Agent":
    from agents import Agent, function_tool
    from agents.testing import ModelStep, ScriptedModel

    @function_tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: sunny, 24 degrees"

    steps = [ModelStep.respond(_respond) for _ in range(8)]
    return Agent(name="Assistant", model=ScriptedModel(steps), tools=[get_weather])


def _respond(call: "ModelCall") -> list[Any]:
    """Return the response of the scripted model, which depends only on the history."""
    from agents.testing import assistant_message, function_call

    items = call.input
    unique = f"{len(items)}"  # the Runner treats items with the same id as one item
    output = items[-1].get("output")
    if output is not None:
        return [
            assistant_message(f"It is {output.split(': ')[1]}: something light.", item_id=f"msg_{unique}")
        ]
    question = text_of(items[-1])
    name, city = (_find_first(pattern, items) for pattern in (r"name is (\w+)", r"live in (\w+)"))
    if "wear" in question and city:
        return [function_call("get_weather", {"city": city}, call_id=f"call_{unique}")]
    reply = _reply_to(question, name, city)
    return [assistant_message(reply, item_id=f"msg_{unique}")]


def _reply_to(question: str, name: str | None, city: str | None) -> str:
    if "who I am" in question:
        return f"Of course: you are {name}, and you live in {city}." if name else "No, we have not met."
    if "pottery" in question:
        return f"Have fun, {name}!"
    return f"Nice to meet you, {name}!" if "Hello" in question else f"You are welcome, {name}."


def _find_first(pattern: str, items: list[Any]) -> str | None:
    matches: list[str] = re.findall(pattern, "\n".join(map(text_of, items)))
    return matches[0] if matches else None


if __name__ == "__main__":
    _run_part(sys.argv[1], Path(sys.argv[2]))
