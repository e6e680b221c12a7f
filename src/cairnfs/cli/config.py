"""`cairn config`: what is set and by whom, and whether a file is in order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cairnfs.cli.errors import CommandError
from cairnfs.cli.home import config_file, read_config
from cairnfs.config_file import Config
from cairnfs.options import SECTIONS, show_value

_DESCRIPTION = """\
Settings come from cairn.toml (--config, $CAIRN_CONFIG, or that of the local cluster), then from
variables such as CAIRN_NAMENODE_PORT, then from the flags of a command; the last one wins."""


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    if given.action == "check":
        return check(given.file)
    print(show(read_config(given.config or config_file()), explain=given.explain))
    return 0


def show(config: Config, *, explain: bool = False) -> str:
    """Every setting as a file would say it, and where it comes from."""
    lines = [f"# {config.path or 'no file is read'}"]
    for section in SECTIONS:
        lines += ["", f"[{section}]"]
        settings = [setting for setting in config if setting.option.section == section]
        texts = [f"{each.option.name} = {show_value(each.value)}" for each in settings]
        width = min(48, max(map(len, texts)))
        for setting, text in zip(settings, texts, strict=True):
            if explain:
                lines.append(f"# {setting.option.help}")
            lines.append(f"{text.ljust(width)}  # {setting.origin}")
    return "\n".join(lines)


def check(path: Path) -> int:
    """Say what is wrong with a file; with nothing wrong, the exit code is 0.

    Nodes are not started: that a store can be opened or a port is free is not looked at.
    """
    config = read_config(path, environment={})
    # Heavy, and only for what one setting says of another.
    from cairnfs.datanode.__main__ import settings_of as datanode_settings_of
    from cairnfs.namenode.__main__ import settings_of as namenode_settings_of

    try:
        namenode_settings_of(config, default_store="sqlite:///any")
        if config.texts("datanode.namenodes") and config.texts("datanode.data"):
            datanode_settings_of(config)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    print(f"{path} is in order")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cairn config", description=_DESCRIPTION, allow_abbrev=False
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check")
    showing = actions.add_parser(
        "show", help="every setting, and where it comes from", allow_abbrev=False
    )
    showing.add_argument("--config", type=Path, metavar="FILE", help="instead of the usual one")
    showing.add_argument("--explain", action="store_true", help="say what each is for")
    checking = actions.add_parser("check", help="say what is wrong with a file")
    checking.add_argument("file", type=Path, metavar="FILE")
    return parser
