"""What went wrong in a task, said by the driver as if it had happened there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cairnfs import errors
from cairnfs.client.namenode import NameNodeUnreachable
from cairnfs.errors import HdfsError, IOException
from cairnfs.network.sockets import PeerTimeout

# The last line of a Python trace: what was raised, and why.
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+): (.*)$", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_PLAIN = ("OSError", "RemoteError")
_UNANSWERED = {
    "NameNodeUnreachable": NameNodeUnreachable,
    "NameNodeRefused": NameNodeUnreachable,
    "PeerTimeout": PeerTimeout,
}
_PYTHON_NAME = re.compile(r"\w*(Error|Exception|Unreachable|Refused|Timeout|Closed)")


@contextmanager
def explained() -> Iterator[None]:
    """Errors of Spark are those of its tasks, without either's traces."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped,unused-ignore]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise explain(str(error)) from None


def explain(text: str) -> HdfsError:
    """The error that a task has raised, from what Spark says about it."""
    _, trace, after = text.rpartition(_TRACE)
    if trace:
        # Java's own trace follows the Python one.
        told = after.split("\n\tat ", 1)[0].split("\n\n", 1)[0]
        raised = [
            (name, message)
            for name, message in _RAISED.findall(told)
            if _PYTHON_NAME.fullmatch(name)
        ]
        if raised:
            name, message = raised[-1]
            known = _UNANSWERED.get(name) or getattr(errors, name, None)
            if isinstance(known, type) and issubclass(known, HdfsError):
                return known(message)
            return IOException(message if name in _PLAIN else f"{name}: {message}")
    first = next((line for line in text.splitlines() if line.strip()), "no reason was given")
    return IOException(f"Spark could not run the job: {first.strip()}")
