"""How arguments are read: what commands share, and what is said about wrong ones."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]

_MOST_SUGGESTED = 3


class Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions and examples stand as they are written, and names beside what they mean."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 14  # so that the longest command stands beside its help


class Parser(argparse.ArgumentParser):
    """A parser that takes names whole, and says what would have been right."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        # What is shortened today may mean another option tomorrow.
        super().__init__(*args, **{**options, "allow_abbrev": False})

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The options; what nobody knows is an error that says what is meant, as far as it can be guessed."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            used = getattr(options, "parser", self)
            used.error(_unknown(unknown[0], option_names(used)))
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            hint = suggestion(str(value), names) or f"it must be one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"there is no {_told(str(value))}; {hint}")

    def add_subparsers(self, **options: Any) -> Any:
        """A place for commands beneath this one, each a parser that knows itself when it is chosen."""
        options.setdefault("parser_class", _Leaf)
        return super().add_subparsers(**options)


class _Leaf(Parser):
    """The parser of a command: it is named in what it has parsed, the innermost last."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = super().parse_known_args(args, namespace)
        if not hasattr(options, "parser"):
            options.parser = self
        return options, unknown


def _unknown(given: str, names: Iterable[str]) -> str:
    if not given.startswith("-"):
        return f"{_told(given)} is one argument too many; quote a text that has spaces"
    name = given.partition("=")[0]
    hint = suggestion(name, names)
    return f"there is no option {_told(name)}" + (f"; {hint}" if hint else "")


def suggestion(given: str, names: Iterable[str]) -> str:
    """What may have been meant, as a question; empty if nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(given, list(names), _MOST_SUGGESTED, 0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _told(text: str) -> str:
    from .output import one_line

    return f"'{one_line(text)}'"


# --- what commands share ---


def add_command(
    commands: Commands, name: str, words: str, examples: str, run: Run | None = None
) -> argparse.ArgumentParser:
    """Add a command, with its help and examples, and what it does."""
    parser = commands.add_parser(
        name,
        help=words,
        description=_sentence(words),
        epilog=f"examples:\n{examples}",
        formatter_class=Help,
    )
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def add_place(parser: argparse.ArgumentParser, *, tenant: bool = True) -> None:
    """Where the database is, and whose data in it."""
    parser.add_argument("--url", help="a path, or postgresql://user@host/name; else as configured")
    parser.add_argument("--config", type=path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    if tenant:
        parser.add_argument("--tenant", default="default", help="whose data it is (default: default)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Whether a program reads the output."""
    parser.add_argument("--json", action="store_true", help="tell it as JSON, for programs")


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Whether a person need not be asked."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def add_owner(parser: argparse.ArgumentParser) -> None:
    """Whose memory it is about."""
    parser.add_argument("--user", help="whose memory; else RECOLLECT_USER")
    parser.add_argument("--agent", help="which agent's; else RECOLLECT_AGENT, or assistant")


def path(text: str) -> "Path":
    """The path of a file."""
    from pathlib import Path  # not needed to tell the help of all

    return Path(text)


def count(text: str) -> int:
    """A number of things, from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1 on")
    return int(text)


def json_object(text: str) -> dict[str, Any]:
    """An object, given as JSON."""
    import json  # not needed to tell the help of all

    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise argparse.ArgumentTypeError('must be a JSON object, such as {"source": "form"}')
    return read


# --- what a parser holds ---


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """The long names of its options."""
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def beneath(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser by their names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def walk(
    parser: argparse.ArgumentParser, path: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """A parser and all commands beneath it, each with the words that lead to it."""
    yield tuple(path), parser
    for name, inner in beneath(parser).items():
        yield from walk(inner, (*path, name))


class UsageError(Exception):
    """The arguments cannot be used together, or something is missing that only the command could tell."""


class NotThereError(Exception):
    """What was named is not there."""


def refuse(words: str) -> NoReturn:
    """Say that the command was used wrongly."""
    raise UsageError(words)
