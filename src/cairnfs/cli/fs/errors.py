"""What a verb can fail with, in the words of Hadoop's shell."""

from __future__ import annotations

IO_ERROR = "Input/output error"
NOT_FOUND = "No such file or directory"
EXISTS = "File exists"
IS_DIRECTORY = "Is a directory"
IS_NOT_DIRECTORY = "Is not a directory"
NOT_EMPTY = "Directory is not empty"


class UsageError(Exception):
    """The command line makes no sense: exit code 255, and how it should look is shown."""


class PathError(Exception):
    """Something is wrong with a path; the verb goes on with the next one, and ends with 1."""

    def __init__(
        self,
        path: object,
        problem: str = IO_ERROR,
        *,
        operation: str = "",
        target: object = None,
        qualified: str = "",
    ) -> None:
        """`qualified` is the path in full, where that says more."""
        where = f"{operation} `{path}'".lstrip()
        if target is not None:
            where += f" to `{target}'"
        tail = f": `{qualified}'" if qualified and qualified != str(path) else ""
        super().__init__(f"{where}: {problem}{tail}")


class VerbError(Exception):
    """Something else is wrong; the verb ends with 1."""
