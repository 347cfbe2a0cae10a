"""`signalbox completion` prints a script by which a shell completes commands, their options and their values."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from signalbox_cli.command import Command, Example, all_commands
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_output
from signalbox_cli.terminal import print_json

EXAMPLES = (
    Example("completion bash", "print the script; in ~/.bashrc: source <(signalbox completion bash)"),
    Example("completion fish", "save it as ~/.config/fish/completions/signalbox.fish"),
)
_BASH = """_signalbox() {{
    local words
    if [ "$COMP_CWORD" = 1 ]; then words="{names}"; else case "${{COMP_WORDS[1]}}" in
{cases}
    esac; fi
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _signalbox signalbox"""


def configure(parser: CommandParser) -> None:
    parser.add_argument("shell", choices=sorted(SCRIPTS), help="the shell that reads the script")
    add_output(parser)


def run(args: Namespace) -> int:
    script = SCRIPTS[args.shell]()
    if args.json:
        print_json({"script": script})
    else:
        print(script)
    return 0


def _bash() -> str:
    commands = all_commands()
    cases = [f'        {command.name}) words="{" ".join(_words(command))}" ;;' for command in commands]
    return _BASH.format(names=" ".join(command.name for command in commands), cases="\n".join(cases))


def _zsh() -> str:
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = []
    for command in all_commands():
        lines.append(f"complete -c signalbox -f -n __fish_use_subcommand -a {command.name} -d '{command.summary}'")
        seen = f"complete -c signalbox -n '__fish_seen_subcommand_from {command.name}'"
        lines += [f"{seen} {f'-l {word[2:]}' if word.startswith('--') else f'-a {word}'}" for word in _words(command)]
    return "\n".join(lines)


def _words(command: Command) -> Iterator[str]:
    """Return the command's long options, and the values that options and arguments may take."""
    for action in command.parser()._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        yield from map(str, action.choices or ())


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
