"""What is set, and by whom: defaults, `cairn.toml`, the environment, the command line.

Each of these overrides those before it.  Whatever is wrong is said in one line that names the
place (a file with its line, a variable, a flag) and what would be right; all that is wrong is
said at once.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cairnfs.options import (
    BY_KEY,
    ENVIRONMENT_PREFIX,
    OPTIONS,
    SECTIONS,
    Option,
    Value,
    options_of,
)

FILE_NAME = "cairn.toml"
FILE_VARIABLE = "CAIRN_CONFIG"
DEFAULT = "default"


class ConfigError(ValueError):
    """A line for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and where it comes from: `default`, `file:line`, a variable or a flag."""

    option: Option
    value: Value
    origin: str = DEFAULT


class Config:
    """The value of every option."""

    def __init__(self, settings: Mapping[str, Setting], path: Path | None) -> None:
        self._settings = settings
        self.path = path  # the file that was read, if any

    def __getitem__(self, key: str) -> Setting:
        return self._settings[key]

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._settings.values())

    # By type, so that whoever asks for the wrong one is told.

    def text(self, key: str) -> str:
        value = self._settings[key].value
        assert isinstance(value, str), key
        return value

    def integer(self, key: str) -> int:
        value = self._settings[key].value
        assert type(value) is int, key
        return value

    def number(self, key: str) -> float:
        value = self._settings[key].value
        assert isinstance(value, float), key
        return value

    def is_on(self, key: str) -> bool:
        value = self._settings[key].value
        assert isinstance(value, bool), key
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._settings[key].value
        assert isinstance(value, tuple), key
        return value


def load_config(
    path: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Config:
    """Put everything together; `flags` are texts by `section.name`.

    Without a path, the file that CAIRN_CONFIG names is read, or none.
    """
    environment = os.environ if environment is None else environment
    if path is None and environment.get(FILE_VARIABLE):
        path = Path(environment[FILE_VARIABLE])
    problems: list[str] = []
    settings = {option.key: Setting(option, option.default) for option in OPTIONS}
    if path is not None:
        settings.update(_read_file(path, problems))
    settings.update(_read_environment(environment, problems))
    for key, text in (flags or {}).items():
        option = BY_KEY[key]
        _take_text(settings, option, text, option.flag, problems)
    if problems:
        raise ConfigError(problems)
    return Config(settings, path)


def add_flags(parser: argparse.ArgumentParser, *sections: str) -> None:
    """Declare the flags of these sections, and `--config`."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"settings, as `cairn config show` prints them (${FILE_VARIABLE})",
    )
    for option in options_of(*sections):
        if option.flag and isinstance(option.default, bool):
            opposite = "false" if option.default else "true"
            parser.add_argument(
                option.flag,
                dest=option.key,
                action="store_const",
                const=opposite,
                help=option.help.replace("%", "%%"),
            )
        elif option.flag:
            default = "" if option.default in ("", ()) else f" ({option.default})"
            parser.add_argument(
                option.flag,
                dest=option.key,
                action="append" if isinstance(option.default, tuple) else "store",
                metavar=_metavar(option),
                help=(option.help + default).replace("%", "%%"),
            )


def config_of(given: argparse.Namespace) -> Config:
    """What the command line, the environment and the file say together."""
    flags = {
        key: ",".join(text) if isinstance(text, list) else text  # of a flag that may be repeated
        for key, text in vars(given).items()
        if key in BY_KEY and text is not None
    }
    return load_config(given.config, flags=flags)


# The file.


def _read_file(path: Path, problems: list[str]) -> dict[str, Setting]:
    try:
        text = path.read_bytes().decode()
        content = tomllib.loads(text)
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
        return {}
    except UnicodeDecodeError as error:
        problems.append(f"{path}: is not text in UTF-8: byte {error.start} is not")
        return {}
    except tomllib.TOMLDecodeError as error:
        problems.append(_describe_syntax(path, str(error)))
        return {}
    found: dict[str, Setting] = {}
    for section, table in content.items():
        where = f"{path}:{find_line(text, section)}"
        if section not in SECTIONS:
            problems.append(f"{where}: {_unknown_section(section, table)}")
        elif not isinstance(table, dict):
            problems.append(
                f"{where}: {section} is a section: write [{section}] and its keys below"
            )
        else:
            for name, value in table.items():
                key = f"{section}.{name}"
                origin = f"{path}:{find_line(text, key)}"
                _take(found, key, value, origin, problems)
    return found


def _take(
    found: dict[str, Setting], key: str, value: Any, origin: str, problems: list[str]
) -> None:
    option = BY_KEY.get(key)
    if option is None:
        problems.append(f"{origin}: {key} is not a setting{_nearest(key)}")
        return
    try:
        found[key] = Setting(option, check_value(option, value), origin)
    except ValueError as error:
        problems.append(f"{origin}: {error}")


def check_value(option: Option, value: Any) -> Value:
    """The value as the option has it; ValueError if it cannot be that."""
    default = option.default
    if isinstance(default, tuple) and isinstance(value, list):
        if all(isinstance(each, str) for each in value):
            value = tuple(value)
    elif isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        raise ValueError(f"{option.key} must be {_kind(option)}, not {_describe(value)}")
    complaint = None if option.check is None else option.check(value)
    if complaint is not None:
        raise ValueError(f"{option.key} is {value}, and {complaint}")
    checked: Value = value
    return checked


def find_line(text: str, key: str) -> int:
    """The line of a TOML text that sets `key`, which is known to be in it; 1 if it hides well.

    tomllib does not say.  Tables, dotted keys and inline tables are looked for.
    """
    table = ""
    quotes = ""  # of a text of several lines that we are in
    for number, line in enumerate(text.splitlines(), 1):
        was_inside = quotes
        for mark in _LONG_QUOTES.findall(line):
            quotes = "" if quotes == mark else quotes or mark
        if was_inside:
            continue
        header = _HEADER.match(line)
        if header is not None:
            table = _plain(header[1])
            if table == key or table.startswith(f"{key}."):
                return number
            continue
        assignment = _ASSIGNMENT.match(line)
        if assignment is not None:
            name = f"{table}.{_plain(assignment[1])}".lstrip(".")
            if name == key or key.startswith(f"{name}.") or name.startswith(f"{key}."):
                return number
    return 1


# Texts: of the environment and of the command line.


def _read_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    by_variable = {option.variable: option for option in OPTIONS}
    prefixes = tuple(f"{ENVIRONMENT_PREFIX}{section.upper()}_" for section in SECTIONS)
    for variable, text in environment.items():
        option = by_variable.get(variable)
        if option is not None:
            _take_text(found, option, text, variable, problems)
        elif variable.startswith(prefixes):
            near = difflib.get_close_matches(variable, by_variable, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            problems.append(f"{variable}: there is no such setting{hint}")
    return found


def _take_text(
    found: dict[str, Setting], option: Option, text: str, origin: str, problems: list[str]
) -> None:
    try:
        found[option.key] = Setting(option, check_value(option, _parse(option, text)), origin)
    except ValueError as error:
        problems.append(f"{origin}: {error}")


def _parse(option: Option, text: str) -> Any:
    """What a text means for an option; as it is if it means nothing, which is then refused."""
    default = option.default
    if isinstance(default, tuple):
        return [each.strip() for each in text.split(",") if each.strip()]
    if isinstance(default, bool):
        return _WORDS.get(text.strip().lower(), text)
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            return text
    return text


# Words.


def _nearest(key: str) -> str:
    section = key.partition(".")[0]
    candidates = [option.key for option in options_of(section)]
    near = difflib.get_close_matches(key, candidates, 1) or difflib.get_close_matches(
        key.partition(".")[2], [option.name for option in OPTIONS], 1
    )
    if not near:
        return f"; [{section}] has {', '.join(o.name for o in options_of(section))}"
    elsewhere = next((o.key for o in OPTIONS if o.name == near[0]), near[0])
    return f"; did you mean {elsewhere}?"


def _unknown_section(section: str, content: Any) -> str:
    if not isinstance(content, dict):
        near = difflib.get_close_matches(section, [option.name for option in OPTIONS], 1)
        owners = [f"[{option.section}]" for option in OPTIONS if near and option.name == near[0]]
        hint = f"; did you mean {near[0]} in {' or '.join(owners)}?" if near else ""
        return f"{section} is in no section{hint}"
    near = difflib.get_close_matches(section, SECTIONS, 1)
    hint = f"did you mean [{near[0]}]?" if near else f"there are {', '.join(SECTIONS)}"
    return f"there is no section [{section}]; {hint}"


def _describe_syntax(path: Path, complaint: str) -> str:
    """tomllib's words, with the line where every other message has it."""
    at = re.search(r"^(.*?)(?: \(at (?:line (\d+), column (\d+)|end of document)\))?$", complaint)
    assert at is not None
    if at[2] is None:
        return f"{path}: {complaint}"
    return f"{path}:{at[2]}: {at[1]} (column {at[3]})"


def _kind(option: Option) -> str:
    return _KINDS[type(option.default)]


def _metavar(option: Option) -> str:
    if option.name.endswith("_bytes_per_s"):
        return "BYTES_PER_SECOND"
    if option.name.endswith("_s"):
        return "SECONDS"
    if option.name.endswith("_min"):
        return "MINUTES"
    if "bytes" in option.name:
        return "BYTES"
    if isinstance(option.default, tuple):
        return "A,B,..."
    return option.name.upper()


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return "a list of other things" if isinstance(value, list) else "a table"
    return str(value)


def _plain(key: str) -> str:
    """A dotted key without quotes and spaces."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


_KINDS: dict[type, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list of texts",
}
_WORDS = {"true": True, "yes": True, "1": True, "on": True} | {
    "false": False,
    "no": False,
    "0": False,
    "off": False,
}
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")
_LONG_QUOTES = re.compile(r"\"\"\"|'''")
