"""`recollect completion`: shell completion scripts, generated from the parser."""

import argparse
import shlex
from collections.abc import Iterable

from .arguments import Commands, add_command, subcommands_of, walk

_SHELLS = ("bash", "zsh", "fish")
_GIVEN = '"${COMP_WORDS[$COMP_CWORD]}"'
# zsh reads this too: it reserves the names `path` and `words`, and offsets must be numbers.
_BASH = """\
# Completion of recollect for bash. In ~/.bashrc:  eval "$(recollect completion bash)"
_recollect() {{
    local each place="" offered="" before=$((COMP_CWORD-1))
    COMPREPLY=()
    for each in "${{COMP_WORDS[@]:1:$before}}"; do
        case "$place $each" in
{steps}
        esac
    done
    case "$place ${{COMP_WORDS[$before]}}" in
{values}
    esac
    case "$place" in
{choices}
    esac
    COMPREPLY=($(compgen -W "$offered" -- "${{COMP_WORDS[$COMP_CWORD]}}"))
}}
complete -o default -F _recollect recollect
"""
_ZSH = """\
#compdef recollect
# Completion of recollect for zsh. In ~/.zshrc, after compinit:  eval "$(recollect completion zsh)"
autoload -U +X bashcompinit && bashcompinit
{bash}"""


def add_completion_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    completion = add_command(
        commands,
        "completion",
        "print a shell completion script",
        '  eval "$(recollect completion bash)"\n'
        "  recollect completion fish > ~/.config/fish/completions/recollect.fish\n",
        _completion,
    )
    completion.add_argument("shell", choices=_SHELLS, help="the shell")


def _completion(options: argparse.Namespace) -> int:
    from . import _parser

    makers = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
    print(makers[options.shell](_parser()), end="")
    return 0


def bash_script(parser: argparse.ArgumentParser) -> str:
    """Return a script for bash."""
    steps, choices, values = [], [], []
    for path, each in walk(parser):
        prefix = "".join(f" {word}" for word in path)
        steps += [
            f'            "{prefix} {name}") place="{prefix} {name}" ;;' for name in subcommands_of(each)
        ]
        words = [*subcommands_of(each), *_positional_choices(each), *_long_names(each)]
        choices.append(f'        "{prefix}") offered={shlex.quote(" ".join(words))} ;;')
        for name, given in _values(each):
            reply = f"COMPREPLY=($(compgen -W {shlex.quote(' '.join(given))} -- {_GIVEN})); " if given else ""
            values.append(f'        "{prefix} {name}") {reply}return ;;')
    return _BASH.format(steps="\n".join(steps), values="\n".join(values), choices="\n".join(choices))


def zsh_script(parser: argparse.ArgumentParser) -> str:
    """Return a script for zsh, which can run bash completion."""
    return _ZSH.format(bash=bash_script(parser).partition("\n")[2])


def fish_script(parser: argparse.ArgumentParser) -> str:
    """Return a script for fish."""
    lines = ["# Completion of recollect for fish. In ~/.config/fish/completions/recollect.fish"]
    for path, each in walk(parser):
        inner = subcommands_of(each)
        condition = " && ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        if inner:
            unseen = f"not __fish_seen_subcommand_from {' '.join(inner)}"
            when = shlex.quote(" && ".join(filter(None, [condition, unseen])))
            lines += [f"complete -c recollect -f -n {when} -a {name}" for name in inner]
        if choices := _positional_choices(each):
            when = shlex.quote(condition)
            lines.append(f"complete -c recollect -f -n {when} -a {shlex.quote(' '.join(choices))}")
        lines += _fish_options(each, condition)
    return "\n".join(lines) + "\n"


def _fish_options(parser: argparse.ArgumentParser, condition: str) -> Iterable[str]:
    when = f" -n {shlex.quote(condition)}" if condition else ""
    with_values = dict(_values(parser))
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--"):
                given = with_values.get(name)
                takes = (
                    ""
                    if given is None
                    else " -r" + (f" -f -a {shlex.quote(' '.join(given))}" if given else "")
                )
                yield f"complete -c recollect{when} -l {name[2:]}{takes} -d {shlex.quote(str(action.help))}"


def _long_names(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def _positional_choices(parser: argparse.ArgumentParser) -> list[str]:
    plain = (action for action in parser._actions if not action.option_strings)
    return [
        str(choice)
        for action in plain
        if action.choices and not isinstance(action, argparse._SubParsersAction)
        for choice in action.choices
    ]


def _values(parser: argparse.ArgumentParser) -> Iterable[tuple[str, list[str]]]:
    """Yield options that take a value, with their choices; no choices mean any value, such as a file."""
    for action in parser._actions:
        if action.option_strings and action.nargs != 0:
            for name in action.option_strings:
                yield name, [str(choice) for choice in action.choices or ()]
