"""`cairn completion bash|zsh|fish`: a script that completes commands, verbs, options and paths.

What is known beforehand is in the script; paths on the cluster come from `cairn complete`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from cairnfs.cli.admin.main import ACTIONS
from cairnfs.cli.errors import CommandError
from cairnfs.cli.fs.verbs import VERBS
from cairnfs.cli.job.main import JOBS
from cairnfs.cli.main import COMMANDS
from cairnfs.cli.policy import ACTIONS as POLICY_ACTIONS
from cairnfs.cli.snapshot.main import ACTIONS as SNAPSHOT_ACTIONS
from cairnfs.cli.xattr import ACTIONS as XATTR_ACTIONS
from cairnfs.cli.xattr import KINDS

HINTS = {
    "bash": "source <(cairn completion bash)        # in ~/.bashrc",
    "zsh": "source <(cairn completion zsh)         # in ~/.zshrc, after compinit",
    "fish": "cairn completion fish | source        # in ~/.config/fish/config.fish",
}
USAGE = "usage: cairn completion bash|zsh|fish\n\n" + "\n".join(HINTS.values())

OTHERS = {
    # command: the words that may follow it
    "admin": [*ACTIONS, "--fs", "--json"],
    "snapshot": [*SNAPSHOT_ACTIONS, "--fs", "--json", "--name", "--keep", "--dry-run", "--wait"],
    "xattr": [*XATTR_ACTIONS, *KINDS, "--fs", "--json"],
    "policy": [*POLICY_ACTIONS, "--fs", "--json", "--wait"],
    "mover": ["--fs", "--json"],
    "balancer": [
        *("--threshold", "--include", "--exclude", "--source", "--idleiterations"),
        *("--dry-run", "--background", "--status", "--stop", "--fs", "--json"),
    ],
    "job": [
        *(*JOBS, "--fs", "--json", "--master", "--conf", "--dry-run", "--name", "--full"),
        *("--depth", "--top", "--small", "--since", "--until", "--output", "--html"),
        *("--bytes-per-s", "--no-snapshots", "--state"),
    ],
    "cluster": ["up", "down", "status", "--directory", "--json"],
    "namenode": ["--store", "--host", "--port", "--format", "--help"],
    "datanode": ["--namenode", "--data", "--host", "--port", "--help"],
    "completion": list(HINTS),
}
WITH_PATHS = {"snapshot", "xattr", "policy", "mover", "job"}  # which take paths on the cluster


def main(arguments: Sequence[str]) -> int:
    if list(arguments) in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(arguments) != 1 or arguments[0] not in HINTS:
        raise CommandError("say for which shell: cairn completion bash, zsh or fish")
    print(make_script(arguments[0]), end="")
    return 0


def make_script(shell: str) -> str:
    """The script for a shell, with the verbs and options that there are."""
    text = resources.files("cairnfs.cli").joinpath(f"completion.{shell}").read_text()
    makers = {"bash": _bash_words, "zsh": _zsh_words, "fish": _fish_words}
    for name, value in makers[shell]().items():
        text = text.replace(f"@{name}@", value)
    return text


def _summary(name: str) -> str:
    return VERBS[name].summary.splitlines()[0].replace("'", "").rstrip(".")


def _cases() -> str:
    """The options of each verb, as the branches of a `case` that bash and zsh read alike."""
    cases = [
        f"        {name}) echo '{' '.join(entry.options)}' ;;" for name, entry in VERBS.items()
    ]
    return "\n".join(cases)


_BASH_PATHS = '; if [[ $word == /* ]]; then found=$(cairn complete -- "$word" 2> /dev/null); fi'


def _bash_words() -> dict[str, str]:
    return {
        "commands": " ".join(COMMANDS),
        "verbs": " ".join(VERBS),
        "options": _cases(),
        "local_verbs": "|".join(name for name, entry in VERBS.items() if entry.is_local),
        "others": "\n".join(
            f"        {name}) found=$(compgen -W '{' '.join(words)}' -- \"$word\")"
            f"{_BASH_PATHS if name in WITH_PATHS else ''} ;;"
            for name, words in OTHERS.items()
        ),
    }


def _zsh_words() -> dict[str, str]:
    return {
        "commands": "\n".join(
            f"        '{name}:{summary.replace(':', ' -').replace('`', '')}'"
            for name, (summary, _, _) in COMMANDS.items()
        ),
        "verbs": "\n".join(
            f"        '{name}:{_summary(name).replace(':', ' -')}'" for name in VERBS
        ),
        "options": _cases(),
        "local_verbs": "|".join(name for name, entry in VERBS.items() if entry.is_local),
        "others": "\n".join(
            f"        {name}) compadd -- {' '.join(words)};"
            f" {'_cairn_paths' if name in WITH_PATHS else '_files'} ;;"
            for name, words in OTHERS.items()
        ),
    }


def _described(name: str, summary: str) -> str:
    """A word and what it means, as zsh parts them."""
    return f"        '{name}:{summary.replace(':', ' -').replace('`', '')}'"


def _fish_words() -> dict[str, str]:
    lines = []
    for name, (summary, _, _) in COMMANDS.items():
        lines.append(f"complete -c cairn -n __fish_use_subcommand -a {name} -d '{summary}'")
    for name, words in OTHERS.items():
        lines.append(
            f"complete -c cairn -n '__fish_seen_subcommand_from {name}' -a '{' '.join(words)}'"
        )
        if name in WITH_PATHS:
            lines.append(
                f"complete -c cairn -n '__fish_seen_subcommand_from {name}' -a '(__cairn_paths)'"
            )
    for name, entry in VERBS.items():
        lines.append(f"complete -c cairn -n __cairn_wants_verb -a {name} -d '{_summary(name)}'")
        for option in entry.options:
            style = f"-l {option[2:]}" if option.startswith("--") else f"-o {option[1:]}"
            lines.append(f"complete -c cairn -n '__cairn_verb_is {name}' {style}")
    return {
        "verbs": " ".join(VERBS),
        "local_verbs": " ".join(name for name, entry in VERBS.items() if entry.is_local),
        "words": "\n".join(lines),
    }
