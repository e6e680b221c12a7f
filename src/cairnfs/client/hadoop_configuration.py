"""What Hadoop's configuration says about where NameNodes are.

Only looked at for a URL that names no host, or one without a port, and only if HADOOP_CONF_DIR is
set: then `hdfs:///path` and the names of several NameNodes together mean what they mean to Hadoop.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from cairnfs.errors import IllegalArgumentException

_FILES = ("core-site.xml", "hdfs-site.xml")


def default_authority() -> str:
    """What fs.defaultFS has between scheme and path; empty if nothing says so."""
    scheme, _, rest = _read().get("fs.defaultFS", "").partition("://")
    return rest.partition("/")[0] if scheme == "hdfs" else ""


def addresses_behind(name: str) -> list[str]:
    """The addresses of the NameNodes that are called so together; none if it is no such name."""
    settings = _read()
    namenodes = settings.get(f"dfs.ha.namenodes.{name}", "")
    keys = [
        f"dfs.namenode.rpc-address.{name}.{namenode.strip()}"
        for namenode in namenodes.split(",")
        if namenode.strip()
    ]
    return [settings[key] for key in keys if key in settings]


def _read() -> dict[str, str]:
    directory = os.environ.get("HADOOP_CONF_DIR")
    settings: dict[str, str] = {}
    for path in (Path(directory, file) for file in _FILES if directory):
        if not path.exists():
            continue
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as error:
            raise IllegalArgumentException(f"{path} is not XML: {error}") from None
        for item in root.iter("property"):
            settings[item.findtext("name", "").strip()] = item.findtext("value", "").strip()
    return settings
