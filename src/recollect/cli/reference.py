"""Generate the command-line reference from the parser: `python -m recollect.cli.reference > PAGE`."""

import argparse

from . import _parser
from .arguments import subcommands_of, walk

_HEAD = """\
# The command line

`recollect COMMAND` works on the database directly. It uses the database of `--url`, else the configured one
(`--config`, `RECOLLECT_CONFIG`, `RECOLLECT_URL`), else `recollect.db` in the working directory. Commands that
store something new (`serve`, `mcp`, `remember`, `import`, `keys create`) create a missing file, not a folder.
All others, such as `worker` and `keys list`, refuse a missing file. A command with `--tenant` sees the data
of that tenant only. Sessions of the Agents SDK have no tenants. `recollect --version` prints the version.

- **For people**: tables are cut to the width of the terminal. Colors and progress appear only on a terminal;
  `NO_COLOR` turns colors off. Contents are escaped: control characters, escape sequences and characters that
  change the writing direction appear as codes, such as `\\x1b`.
- **For programs**: `--json` prints one JSON document to standard output. All other messages go to standard
  error. `recollect export` writes JSON Lines unless `--json` is given.
- **Confirmation**: irreversible commands (`erase`, `sessions delete`) ask on a terminal and need `--yes`
  elsewhere.

| exit code | meaning |
|---|---|
| 0 | success; also a search without hits and an erasure of nothing |
| 1 | an error, described on standard error; for `recollect doctor`: a check failed |
| 2 | wrong usage; the message suggests what to write |
| 3 | the named session, entry, run or database does not exist |
| 130, 141 | interrupted by Ctrl-C; the reader of the output is gone |

Completion: put `eval "$(recollect completion bash)"` in `~/.bashrc`, or the same with `zsh` in `~/.zshrc`
after `compinit`. For fish, run `recollect completion fish > ~/.config/fish/completions/recollect.fish`.

This page is generated: `python -m recollect.cli.reference > docs/reference/command-line.md`.
"""


def page() -> str:
    """Return the page as Markdown."""
    commands = [(path, parser) for path, parser in walk(_parser()) if path]
    return "\n".join([_HEAD, *(_section(path, parser) for path, parser in commands)])


def _section(path: tuple[str, ...], parser: argparse.ArgumentParser) -> str:
    level = "#" * (len(path) + 1)
    lines = [f"{level} `recollect {' '.join(path)}`", "", _words(parser), ""]
    rows = [_row(action) for action in parser._actions if _is_documented(action)]
    if rows:
        lines += ["| argument | meaning |", "|---|---|", *rows, ""]
    if subcommands_of(parser):
        lines += [f"Actions: {', '.join(f'`{name}`' for name in subcommands_of(parser))}.", ""]
    if parser.epilog:
        shown = parser.epilog.removeprefix("examples:\n").rstrip("\n").split("\n")
        lines += [*(f"  {line}" for line in shown), ""]
    return "\n".join(lines)


def _words(parser: argparse.ArgumentParser) -> str:
    return " ".join((parser.description or "").split()) or f"See `{parser.prog} --help`."


def _is_documented(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def _row(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    if isinstance(action, argparse.BooleanOptionalAction):
        yes, no = action.option_strings
        return f"| `{yes}` | {action.help} |\n| `{no}` | the opposite of `{yes}` |"
    name = f"{action.option_strings[-1]} {value}".rstrip() if action.option_strings else value
    must = " (required)" if action.required and action.option_strings else ""
    return f"| `{name}` | {str(action.help).replace('|', chr(92) + '|')}{must} |"


def _value(action: argparse.Action) -> str:
    shown = action.metavar or (
        "\\|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    )
    return f"[{shown}]" if action.nargs == "?" else str(shown)


if __name__ == "__main__":
    print(page(), end="")
