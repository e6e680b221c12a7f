"""What every family of calls shares: whom to ask, and how paths are written."""

from __future__ import annotations

import os
from typing import TypeAlias

from cairnfs.client.addresses import parse_url
from cairnfs.client.namenode import NameNodes
from cairnfs.errors import IllegalArgumentException, InvalidPathException

PathLike: TypeAlias = str | os.PathLike[str]


def check_text(text: str, what: str) -> None:
    """Names are sent as UTF-8; what the operating system has told of others cannot be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidPathException(f"Invalid {what} name {text!a}: it is not UTF-8") from None


class Calls:
    """A part of FileSystem."""

    _namenodes: NameNodes

    def absolute_path(self, path: PathLike) -> str:
        """A path as NameNodes want it.

        A URL of this file system counts as its path; what does not begin at the root
        begins at the user's home directory, as in Hadoop.
        """
        text = os.fspath(path)
        scheme, separator, _ = text.partition("://")
        if separator and "/" not in scheme:
            location = parse_url(text)
            if not set(location.namenodes) & set(self._namenodes.addresses):
                names = ",".join(map(str, self._namenodes.addresses))
                raise IllegalArgumentException(f"Wrong FS: {text}, expected: hdfs://{names}")
            text = location.path
        if not text:
            raise IllegalArgumentException("Can not create a Path from an empty string")
        if not text.startswith("/"):
            text = f"{self.home_directory}/{text}"
        if text.endswith("/") or "//" in text:
            text = "/" + "/".join(part for part in text.split("/") if part)
        check_text(text, "path")
        return text

    @property
    def home_directory(self) -> str:
        """Where paths without a slash in front begin."""
        return f"/user/{self._namenodes.user}"
