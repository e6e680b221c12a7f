"""What nodes say while they run: to standard error, for people or for programs.

    text    2026-11-15 15:27:40,123 INFO cairnfs.namenode.safe_mode: safe mode is off
    json    {"time": "2026-11-15T15:27:40.123Z", "level": "INFO", "logger": ..., "message": ...}

Invariant: a record is one line of JSON, whatever is in it.  (What threads are at is no record, but
text, whoever asks for it.)
"""

from __future__ import annotations

import faulthandler
import json
import logging
import signal
import sys
from datetime import UTC, datetime
from typing import TextIO

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One object a line; a stack trace is a text in it."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _format_time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def set_up_logging(level: str, format: str, stream: TextIO | None = None) -> None:
    """Let this process say what is at least of this level; `format` is text or json.

    Where somebody has set up logging before, a test for example, it stays as it is.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])


def tell_threads_on_sigquit() -> None:
    """Let `kill -QUIT` make this process say what each thread is at, as a JVM does, and go on."""
    if sys.__stderr__ is not None:
        faulthandler.register(signal.SIGQUIT, sys.__stderr__)


def _format_time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.removesuffix("+00:00") + "Z"
