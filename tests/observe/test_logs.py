"""What nodes say, as text and as JSON: real processes, read line by line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = """if 1:
    import logging
    from cairnfs.observe.logs import set_up_logging
    set_up_logging("{level}", "{format}")
    log = logging.getLogger("cairnfs.some.module")
    log.debug("a detail")
    log.info("two\\nlines, and %s", "a \\"quote\\"")
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("it failed")
"""


def said(level: str, format: str) -> str:
    script = SCRIPT.format(level=level, format=format)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    return done.stderr


def test_json_is_an_object_a_line() -> None:
    detail, info, error = map(json.loads, said("DEBUG", "json").splitlines())
    assert detail["message"] == "a detail"
    assert info["message"] == 'two\nlines, and a "quote"'
    assert (info["level"], info["logger"]) == ("INFO", "cairnfs.some.module")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", info["time"])
    assert info["thread"] == "MainThread"
    assert error["exception"].endswith("ZeroDivisionError: division by zero")
    assert "exception" not in info


def test_text_is_for_people() -> None:
    first, *_ = said("INFO", "text").splitlines()
    assert re.fullmatch(r"\S+ \S+ INFO cairnfs.some.module: two", first)


def test_the_level_is_the_least_that_is_said() -> None:
    assert "a detail" not in said("INFO", "text")
    assert [json.loads(line)["level"] for line in said("ERROR", "json").splitlines()] == ["ERROR"]


def test_nodes_log_as_they_are_told() -> None:
    command = [sys.executable, "-m", "cairnfs.datanode", "--namenode", "127.0.0.1:1"]
    options = ["--data", "/dev/null/none", "--log-format", "xml"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode != 0
    assert "logging.format is xml, and must be one of text, json" in done.stderr


def test_a_node_tells_what_its_threads_are_at(tmp_path: Path) -> None:
    """To whoever sends SIGQUIT, while it waits for a NameNode that does not come."""
    command = [sys.executable, "-m", "cairnfs.datanode", "--namenode", "127.0.0.1:1"]
    ports = ["--port", "0", "--ipc-port", "0", "--http-port", "0"]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path), *ports], stderr=subprocess.PIPE, text=True
    ) as node:
        assert node.stderr is not None
        try:
            assert "waiting for NameNode" in node.stderr.readline()
            node.send_signal(signal.SIGQUIT)
            told = iter(node.stderr.readline, "")
            assert any("_wait_for_namespace" in line for line in told)
            assert any("waiting for NameNode" in line for line in told)  # it goes on
        finally:
            node.terminate()
