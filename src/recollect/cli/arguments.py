"""Command-line parsing: the parser, options that commands share, and messages about wrong arguments."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from pathlib import Path

    from ..memory.operations.description import Argument, Operation

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]
OperationT = TypeVar("OperationT", bound="Operation[Any]")

_MOST_SUGGESTED = 3


class Help(argparse.RawDescriptionHelpFormatter):
    """Keep descriptions and examples as written, and align names with their help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 14  # keeps the longest command on the line of its help


class Parser(argparse.ArgumentParser):
    """A parser that accepts no abbreviations and suggests the right name."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", Help)
        # An abbreviation could mean another option in a later version.
        super().__init__(*args, **{**options, "allow_abbrev": False})

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the options. An unknown argument is an error that suggests the closest name."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            used = getattr(options, "parser", self)
            used.error(_describe_unknown(unknown[0], option_names(used)))
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            hint = suggestion(str(value), names) or f"use one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"unknown value {_quote(str(value))}; {hint}")

    def add_subparsers(self, **options: Any) -> Any:
        """Add subcommands. The parsed options name the parser of the chosen one."""
        options.setdefault("parser_class", _Leaf)
        return super().add_subparsers(**options)


class _Leaf(Parser):
    """The parser of a command. It stores itself in the parsed options; the innermost parser wins."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = super().parse_known_args(args, namespace)
        if not hasattr(options, "parser"):
            options.parser = self
        return options, unknown


def _describe_unknown(given: str, names: Iterable[str]) -> str:
    if not given.startswith("-"):
        return f"{_quote(given)} is an unexpected argument; quote text that contains spaces"
    name = given.partition("=")[0]
    hint = suggestion(name, names)
    return f"unknown option {_quote(name)}" + (f"; {hint}" if hint else "")


def suggestion(given: str, names: Iterable[str]) -> str:
    """Return a question that suggests the closest names, or an empty text."""
    from difflib import get_close_matches

    near = get_close_matches(given, list(names), _MOST_SUGGESTED, 0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _quote(text: str) -> str:
    from .output import one_line

    return f"'{one_line(text)}'"


# --- shared options ---


def add_command(
    commands: Commands, name: str, words: str, examples: str, run: Run | None = None
) -> argparse.ArgumentParser:
    """Add a command with its help, its examples and the function that runs it."""
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


def add_database_options(parser: argparse.ArgumentParser, *, tenant: bool = True) -> None:
    """Add `--url`, `--config` and `--tenant`."""
    parser.add_argument(
        "--url",
        help="a path, postgresql://user@host/name, or https://host of a service (default: as configured)",
    )
    parser.add_argument("--config", type=path, metavar="FILE", help="a TOML file (default: RECOLLECT_CONFIG)")
    if tenant:
        parser.add_argument("--tenant", default="default", help="the tenant (default: default)")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    """Add `--yes`."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def add_owner_options(parser: argparse.ArgumentParser) -> None:
    """Add `--user` and `--agent`."""
    parser.add_argument("--user", help="the user (default: RECOLLECT_USER)")
    parser.add_argument("--agent", help="the agent (default: RECOLLECT_AGENT, else assistant)")


_OPTION_NAMES = {
    "agent_id": "agent",
    "user_id": "user",
    "content_type": "type",
    "include_retired": "retired",
    "conversation_id": "conversation",
    "tags": "tag",
}
"""The names of options for arguments that have other names in Python."""


def add_operation_options(
    parser: argparse.ArgumentParser, operation: "type[Operation[Any]]", *left_out: str
) -> None:
    """Add an option for each argument of an operation, except for positions and those left out."""
    from ..memory.operations.description import Kind, arguments_of  # not needed for the general help

    for argument in arguments_of(operation):
        if argument.name in left_out or argument.local_only or argument.kind is Kind.POSITION:
            continue
        name = _OPTION_NAMES.get(argument.name, argument.name).replace("_", "-")
        default = None if argument.is_required else argument.default
        form = {"dest": argument.name, "default": default, **_form_of(argument)}
        parser.add_argument(f"--{name}", help=_help_for(argument, default), **form)


def _form_of(argument: "Argument") -> dict[str, Any]:
    """How the value of an option is written and parsed."""
    from ..memory.operations.description import Kind

    if argument.type is bool:
        return {"action": "store_true"}
    if get_origin(argument.type) is Literal:
        return {"choices": get_args(argument.type)}
    forms: dict[Kind | None, dict[str, Any]] = {
        Kind.TAGS: {"action": "append", "metavar": "TAG"},
        Kind.METADATA: {"type": json_object, "metavar": "JSON"},
        Kind.BOUND: {"type": time, "metavar": "TIME"},
        Kind.TIME: {"metavar": "TIME"},
        Kind.CHANCE: {"type": chance, "metavar": "CHANCE"},
        Kind.ROWS: {"type": count, "metavar": "N"},
        Kind.KEY: {"metavar": argument.name.upper()},
    }
    return forms.get(argument.kind, {"metavar": _OPTION_NAMES.get(argument.name, argument.name).upper()})


def _help_for(argument: "Argument", default: object) -> str:
    words = argument.description.replace("`", "").rstrip(".")
    notes = ["may be repeated"] if argument.name == "tags" else []
    if default is not None and default is not False:
        notes.append(f"default: {default}")
    return f"{words[0].lower()}{words[1:]}" + (f" ({', '.join(notes)})" if notes else "")


def operation_from(options: argparse.Namespace, operation: type[OperationT], **given: Any) -> OperationT:
    """The request that options mean. `given` has the arguments that are no options."""
    from ..memory.operations.description import arguments_of

    names = [argument.name for argument in arguments_of(operation)]
    return operation(**{name: getattr(options, name) for name in names if hasattr(options, name)}, **given)


def path(text: str) -> "Path":
    """Parse the path of a file."""
    from pathlib import Path  # not needed for the general help

    return Path(text)


def count(text: str) -> int:
    """Parse a positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(text)


def chance(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError("must be a number from 0 to 1")
    return number


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    import json  # not needed for the general help

    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise argparse.ArgumentTypeError('must be a JSON object, such as {"source": "form"}')
    return read


def date(text: str) -> str:
    """Parse a day, a month or a year."""
    from ..memory.times import read_date  # not needed for the general help

    return _parse(text, lambda: read_date("it", text), "must be a date such as 2026-05-07, 2026-05 or 2026")


def time(text: str) -> str:
    """Parse a day, a month, a year or a time. The store decides about the end of a day."""
    from ..memory.times import read_bound

    return _parse(
        text,
        lambda: read_bound("it", text, is_end=False),
        "must be a date such as 2026-05-07, 2026-05 or 2026, or a time such as 2026-05-07T10:00:00Z",
    )


def _parse(text: str, read: Callable[[], object], message: str) -> str:
    try:
        read()
    except ValueError as error:
        raise argparse.ArgumentTypeError(message) from error
    return text


# --- parser inspection ---


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long option names of a parser."""
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def subcommands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the subcommands of a parser by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def walk(
    parser: argparse.ArgumentParser, path: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield a parser and all its subcommands, each with the words that lead to it."""
    yield tuple(path), parser
    for name, inner in subcommands_of(parser).items():
        yield from walk(inner, (*path, name))


class UsageError(Exception):
    """The arguments do not fit together, or a required one is missing."""


class NotFoundError(Exception):
    """The named object does not exist."""


def raise_usage_error(words: str) -> NoReturn:
    """Report wrong usage."""
    raise UsageError(words)
