"""Settings: who overrides whom, and what is said of every mistake."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import pytest

from cairnfs.config import AuditSettings, NameNodeSettings, TrashSettings
from cairnfs.config_file import ConfigError, add_flags, config_of, find_line, load_config
from cairnfs.datanode.__main__ import settings_of as datanode_settings_of
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.namenode.__main__ import settings_of as namenode_settings_of
from cairnfs.options import BY_KEY, OPTIONS, SECTIONS, show_value, without_password

MISTAKES = Path(__file__).parent / "config_mistakes.txt"
DOCUMENT = Path(__file__).parents[1] / "docs" / "operating.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cairn.toml"


def problems_of(file: Path, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_config(file, environment=environment)
    return [problem.replace(str(file), "FILE") for problem in raised.value.problems]


def test_a_flag_goes_over_a_variable_over_a_file_over_a_default(file: Path) -> None:
    file.write_text("# a comment\n[namenode]\nport = 1\nhost = 'h'\nexpiry_s = 9\n")
    environment = {"CAIRN_NAMENODE_PORT": "2", "CAIRN_NAMENODE_EXPIRY_S": "8"}
    config = load_config(file, environment=environment, flags={"namenode.port": "3"})
    assert (config.integer("namenode.port"), config["namenode.port"].origin) == (3, "--port")
    expiry = config["namenode.expiry_s"]
    assert (expiry.value, expiry.origin) == (8.0, "CAIRN_NAMENODE_EXPIRY_S")
    host = config["namenode.host"]
    assert (host.value, host.origin) == ("h", f"{file}:4")
    assert config["trash.interval_min"].origin == "default"


def test_the_file_is_also_found_by_a_variable(file: Path) -> None:
    file.write_text("[logging]\nformat = 'json'\n")
    config = load_config(environment={"CAIRN_CONFIG": str(file)})
    assert (config.text("logging.format"), config.path) == ("json", file)


def test_every_kind_of_value_in_a_file_and_as_text(file: Path) -> None:
    file.write_text(
        """\
        namenode.duties = false
        datanode = { data = ["[SSD]/a,b", "/c"], reserved_bytes = 1_000 }
        [namenode]
        safe_mode_threshold = 1
        """.replace("namenode.duties", "audit.files_max = 2\n#")
    )
    config = load_config(file, environment={"CAIRN_NAMENODE_DUTIES": "no"})
    assert config.texts("datanode.data") == ("[SSD]/a,b", "/c")
    assert config.integer("datanode.reserved_bytes") == 1000
    assert config.number("namenode.safe_mode_threshold") == 1.0
    assert config.is_on("namenode.duties") is False
    assert config.integer("audit.files_max") == 2
    assert config["audit.files_max"].origin == f"{file}:1"
    assert config["datanode.data"].origin == f"{file}:3"
    texts = load_config(environment={"CAIRN_DATANODE_DATA": "/a, [SSD]/b,"})
    assert texts.texts("datanode.data") == ("/a", "[SSD]/b")


def mistakes() -> list[tuple[str, str]]:
    """Files, and what is said of them: the line that begins with an arrow ends each."""
    parts = re.split(r"^=> (.*)\n+", MISTAKES.read_text(), flags=re.MULTILINE)
    return list(zip(parts[::2], parts[1::2], strict=False))


@pytest.mark.parametrize(("text", "problem"), mistakes())
def test_each_mistake_in_a_file_is_one_clear_line(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    assert problems_of(file) == [f"FILE:{problem}"]


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    file.write_text("[namenode]\nprot = 1\n[trash]\ninterval_min = 'x'\n")
    found = problems_of(file, CAIRN_NAMENODE_PORT="x", CAIRN_AUDIT_FIEL="y")
    assert found == [
        "FILE:2: namenode.prot is not a setting; did you mean namenode.port?",
        "FILE:4: trash.interval_min must be a number, not the text 'x'",
        "CAIRN_NAMENODE_PORT: namenode.port must be a whole number, not the text 'x'",
        "CAIRN_AUDIT_FIEL: there is no such setting; did you mean CAIRN_AUDIT_FILE?",
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert problems_of(missing) == ["FILE: cannot be read: No such file or directory"]
    assert problems_of(tmp_path) == ["FILE: cannot be read: Is a directory"]
    (tmp_path / "binary").write_bytes(b"\xff")
    assert problems_of(tmp_path / "binary") == ["FILE: is not text in UTF-8: byte 0 is not"]


def test_variables_of_others_are_left_alone() -> None:
    load_config(environment={"CAIRN_POSTGRES_BIN": "/x", "CAIRNFS_HOME": "/y", "PATH": "/z"})


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("[a]\nb=1\n[c]\nb=2", "c.b", 4),
        ("a.b = 1", "a.b", 1),
        ('x = """\n[c]\nb = 1\n"""\n[c]\nb = 2', "c.b", 6),
        ("['c']\n\"b\" = 1", "c.b", 2),
        ("\nc = { b = 1 }", "c.b", 2),
        ("[ c ]\n  b   = 1", "c.b", 2),
        ("[c.d]\nb = 1", "c.d", 1),
    ],
)
def test_lines_are_found(text: str, key: str, line: int) -> None:
    assert find_line(text, key) == line


def test_defaults_are_those_of_the_nodes() -> None:
    """They are written twice: in the table of options, and where nodes are made of them."""
    config = load_config(
        environment={},
        flags={"namenode.store": "sqlite:///x", "datanode.namenodes": "h:1", "datanode.data": "/d"},
    )
    assert namenode_settings_of(config) == NameNodeSettings(
        "sqlite:///x", audit=AuditSettings(), trash=TrashSettings()
    )
    made = datanode_settings_of(config)
    assert made == DataNodeSettings(namenodes=made.namenodes, data=made.data)


def test_every_option_reaches_its_node() -> None:
    """Each is set to something else, and something of a node changes."""
    other: dict[type, str] = {str: "zzz", bool: "true", int: "4321", float: "0.5"}
    chosen = {
        "namenode.control": "pessimistic",
        "namenode.duties": "false",
        "namenode.expiry_s": "99",
        "leases.hard_limit_s": "99",
        "datanode.namenodes": "other:1",
        "datanode.data": "/other",
        "audit.excluded_commands": "open",
    }
    given = {"namenode.store": "s", "datanode.namenodes": "h:1", "datanode.data": "/d"}
    before = load_config(environment={}, flags=given)
    for option in OPTIONS:
        if option.section in ("logging", "cluster") or option.key == "namenode.http_port":
            continue  # which are nothing of a NameNode's or DataNode's own
        text = chosen.get(option.key) or other[type(option.default)]
        after = load_config(environment={}, flags={**given, option.key: text})
        settings = datanode_settings_of if option.section == "datanode" else namenode_settings_of
        assert settings(after) != settings(before), option.key


def test_flags_are_declared_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, "namenode", "logging")
    config = config_of(parser.parse_args(["--port", "7", "--log-format", "json"]))
    assert (config.integer("namenode.port"), config.text("logging.format")) == (7, "json")
    assert not config.is_on("datanode.sync_on_close")
    add_flags(of_a_datanode := argparse.ArgumentParser(), "datanode")
    assert config_of(of_a_datanode.parse_args(["--sync-on-close"])).is_on("datanode.sync_on_close")
    several = of_a_datanode.parse_args(["--namenode", "a:1,b:2", "--namenode", "c:3"])
    assert config_of(several).texts("datanode.namenodes") == ("a:1", "b:2", "c:3")
    with pytest.raises(ConfigError, match=r"^--port: namenode.port must be a whole number"):
        config_of(parser.parse_args(["--port", "x"]))
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "--datanode-dead-after SECONDS" in capsys.readouterr().out


def test_each_section_has_every_name_and_flag_once() -> None:
    assert len(BY_KEY) == len(OPTIONS)
    for section in SECTIONS:
        flags = [o.flag for o in OPTIONS if o.flag and o.section in (section, "logging")]
        assert len(flags) == len(set(flags))


def test_passwords_are_not_shown() -> None:
    assert without_password("postgresql://u:p@h/d?x=1") == "postgresql://u:***@h/d?x=1"
    assert without_password("postgresql://u@h/d") == "postgresql://u@h/d"
    assert without_password("sqlite:///a:b@c") == "sqlite:///a:b@c"
    assert without_password("http://[half") == "http://[half"
    assert show_value(("postgresql://u:p@h/d", 'a"b')) == '["postgresql://u:***@h/d", "a\\"b"]'


def test_the_document_names_every_setting() -> None:
    text = DOCUMENT.read_text()
    rows = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", text, re.MULTILINE))
    assert rows == set(BY_KEY)
    for option in OPTIONS:
        assert f"| `{option.key}` | `{show_value(option.default)}` |" in text


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrashSettings().interval_min = 1.0  # type: ignore[misc]
