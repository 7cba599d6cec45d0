"""The reference of the command line, made from its parser: `python -m recollect.cli.reference > PAGE`."""

import argparse

from . import _parser
from .arguments import beneath, walk

_HEAD = """\
# The command line

`recollect COMMAND` works on the database directly: the one of `--url`, else the one that is configured
(`--config`, `RECOLLECT_CONFIG`, `RECOLLECT_URL`), else `recollect.db` in the working folder. Commands that
look for something make no file. Where a command takes `--tenant`, it sees that tenant's data alone; sessions
of the Agents SDK know no tenants.

- **For people**: tables, shortened to the width of a terminal; colours and progress only on a terminal, and
  no colours with `NO_COLOR`. Contents are shown as text: control characters, escape sequences and characters
  that turn the direction of writing appear as their codes, such as `\\x1b`.
- **For programs**: `--json` gives one JSON document on standard output; whatever else is said goes to
  standard error. `recollect export` writes JSON Lines unless `--json` is given.
- **Who is asked**: what cannot be undone (`erase`, `sessions delete`) asks on a terminal, and needs `--yes`
  elsewhere.

| exit code | meaning |
|---|---|
| 0 | done; also a search that finds nothing, and an erasure of nothing |
| 1 | an error that is told on standard error; for `recollect doctor`: something is wrong |
| 2 | wrong usage; it says what would be right |
| 3 | what was named is not there: a session, an entry, a run, a database |
| 130, 141 | interrupted by Ctrl-C; nobody reads the output any more |

Completion: `eval "$(recollect completion bash)"` in `~/.bashrc`, the same with `zsh` in `~/.zshrc` after
`compinit`, or `recollect completion fish > ~/.config/fish/completions/recollect.fish`.

This page is made from the commands themselves: `python -m recollect.cli.reference`.
"""


def page() -> str:
    """The page, in Markdown."""
    commands = [(path, parser) for path, parser in walk(_parser()) if path]
    return "\n".join([_HEAD, *(_section(path, parser) for path, parser in commands)])


def _section(path: tuple[str, ...], parser: argparse.ArgumentParser) -> str:
    level = "#" * (len(path) + 1)
    lines = [f"{level} `recollect {' '.join(path)}`", "", _words(parser), ""]
    rows = [_row(action) for action in parser._actions if _is_told(action)]
    if rows:
        lines += ["| argument | meaning |", "|---|---|", *rows, ""]
    if beneath(parser):
        lines += [f"Actions: {', '.join(f'`{name}`' for name in beneath(parser))}.", ""]
    if parser.epilog:
        told = parser.epilog.removeprefix("examples:\n").rstrip("\n").split("\n")
        lines += [*(f"  {line}" for line in told), ""]
    return "\n".join(lines)


def _words(parser: argparse.ArgumentParser) -> str:
    return " ".join((parser.description or "").split()) or f"See `{parser.prog} --help`."


def _is_told(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def _row(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    name = f"{action.option_strings[-1]} {value}".rstrip() if action.option_strings else value
    must = " (required)" if action.required and action.option_strings else ""
    return f"| `{name}` | {str(action.help).replace('|', chr(92) + '|')}{must} |"


def _value(action: argparse.Action) -> str:
    told = action.metavar or ("\\|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return f"[{told}]" if action.nargs == "?" else str(told)


if __name__ == "__main__":
    print(page(), end="")
