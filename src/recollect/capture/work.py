"""What to keep of work, by rule: commands that worked, and the state of the work before it is compacted."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..memory.offline.own_words import own_words
from ..strategies.summaries.injection import render_memory
from .masking import mask_text
from .transcript import Run, Step

_LONGEST_COMMAND = 120  # characters
_MOST_COMMANDS = 200  # of a session
_PURPOSES = (
    ("runs the tests", r"\b(?:py)?test(?:s|ing)?\b|\bvitest\b|\bjest\b|\btox\b|\bnox\b|\brspec\b|\bctest\b"),
    (
        "checks the code",
        r"\blint\b|\bruff\b|\bmypy\b|\beslint\b|\bclippy\b|\bpre-commit\b|\btypecheck\b|\bcheck\b",
    ),
    ("formats the code", r"\bfmt\b|\bformat\b|\bprettier\b|\bblack\b|\bgofmt\b"),
    ("builds the project", r"\bbuild\b|\bcompile\b|^make$"),
    ("installs what is needed", r"\b(?:install|sync)\b|\bnpm ci\b"),
    ("migrates the database", r"\bmigrate\b|\bmigrations?\b|\balembic\b"),
    ("starts the application", r"\b(?:serve|runserver|start|dev)\b|docker compose up"),
)
# How the command begins that does the work: a program that runs tasks, and nothing that only looks.
_RUNNERS = re.compile(
    r"(?:(?:\./|\.venv/bin/)?[\w./-]*(?:make|just|task|tox|nox|pytest|ruff|mypy|uv|poetry|pdm|hatch|npm|pnpm|yarn|npx"
    r"|bun|deno|cargo|go|mvnw?|gradlew?|dotnet|bundle|rake|mix|composer|alembic|docker|ctest|cmake|ninja|bazel"
    r"|python3?|django-admin|eslint|prettier|jest|vitest|black|pre-commit|manage\.py)|\./scripts?/\S+)(?=\s|$)"
)
_IN_FOLDER = re.compile(r"cd \S+ (?:&&|;) ")
_TAIL = re.compile(r"(?: 2>&1)?(?: \| (?:tail|head|grep|cat|less)\b[^|]*)*$")
_UNSAFE = re.compile(r"[\n`]|\$\(|<<|\[masked |/tmp/|\brm\b|\bkill|\bsudo\b|--force|&&|;|\|\|")


def command_of(run: Run) -> str | None:
    """A command that worked in a form that can be compared and repeated; `None` if it is not worth a line."""
    text = _TAIL.sub("", _IN_FOLDER.sub("", run.command.strip(), count=1)).strip()
    is_plain = 3 < len(text) <= _LONGEST_COMMAND and not _UNSAFE.search(text)
    if not run.succeeded or not is_plain or not _RUNNERS.match(text) or purpose_of(text) is None:
        return None
    return text if mask_text(text) == text else None


def purpose_of(command: str) -> str | None:
    """What a command is for, in words; `None` if that is not certain."""
    return next((words for words, pattern in _PURPOSES if re.search(pattern, command)), None)


def sentence_of(command: str) -> str:
    """The text of the entry about a command."""
    return f"In this project `{command}` {purpose_of(command)}: it worked in at least two sessions."


@dataclass
class WorkState:
    """The state of the work of a session, gathered from its steps."""

    goal: str | None = None
    asked: list[str] = field(default_factory=list)
    answered: str | None = None
    touched: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    commands: dict[str, None] = field(default_factory=dict)

    def add(self, step: Step) -> Step:
        """Take what a step changes, and return the step."""
        if step.is_side:
            return step
        if step.said and step.said.role == "user":
            text = _short(own_words(step.said.text))
            self.goal = self.goal or text or None
            self.asked = [*self.asked, text][-6:] if text else self.asked
        elif step.said:
            self.answered = _short(step.said.text)
        for path in step.touched:
            self.touched = [*(each for each in self.touched if each != path), path][-20:]
        self.plan = list(step.plan[:10]) if step.plan else self.plan
        if step.run and len(self.commands) < _MOST_COMMANDS and (command := command_of(step.run)):
            self.commands[command] = None
        return step

    def to_dict(self) -> dict[str, Any]:
        """The state as a JSON object, without secrets."""
        listed = {"asked": self.asked, "touched": self.touched, "plan": self.plan}
        masked: dict[str, Any] = {name: [mask_text(each) for each in texts] for name, texts in listed.items()}
        return masked | {"goal": mask_text(self.goal or ""), "answered": mask_text(self.answered or "")}


def _short(text: str) -> str:
    return " ".join(text.split())[:400]


def render_work(state: dict[str, Any]) -> str:
    """A stored state as a block for the agent: data, and no instructions."""
    lines = [
        *_named("Goal of this session", [state["goal"]]),
        *_named("Asked by the user, the latest last", state["asked"]),
        *_named("Open points", state["plan"]),
        *_named("Files written, the latest last", state["touched"]),
        *_named("Last words of the agent", [state["answered"]]),
    ]
    return render_memory(None, lines, token_budget=1500).text


def _named(name: str, texts: Iterable[str]) -> Iterable[str]:
    return [f"{name}: {text}" for text in texts if text]
