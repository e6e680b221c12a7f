"""How a file system is named: `hdfs://host:8020/path`, with several NameNodes if need be."""

from __future__ import annotations

import os
from typing import NamedTuple

from cairnfs.errors import IllegalArgumentException
from cairnfs.network.address import Address
from cairnfs.user_name import user_name

DEFAULT_PORT = 8020
SCHEMES = ("hdfs", "cairn")


class Location(NamedTuple):
    """What a URL says: whom to ask, as whom if it names a user, and for which path."""

    namenodes: tuple[Address, ...]
    user: str | None
    path: str


def parse_url(url: str) -> Location:
    """Read `scheme://[user@]host[:port][,host[:port]...][/path]`, or the same without scheme.

    Without a host, or with the name of several NameNodes in its place, it is as Hadoop's
    configuration says.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = SCHEMES[0], url
    if scheme not in SCHEMES:
        raise IllegalArgumentException(
            f"{url!r} begins with {scheme}://; this client speaks hdfs:// and cairn://"
        )
    authority, slash, path = rest.partition("/")
    user, at, hosts = authority.rpartition("@")
    namenodes = tuple(_parse_address(host, url) for host in _find_hosts(hosts, url))
    return Location(namenodes, user if at else None, slash + path or "/")


def split_url(url: str) -> tuple[str, str]:
    """A URL up to its path, and the path without a slash at its end; that of the root is empty."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    names = [name for name in path.split("/") if name]
    return f"{scheme}://{authority}", "".join(f"/{name}" for name in names)


def _find_hosts(hosts: str, url: str) -> list[str]:
    if ":" in hosts or "," in hosts:
        return hosts.split(",")
    from cairnfs.client import hadoop_configuration as hadoop

    hosts = hosts or hadoop.default_authority()
    if not hosts:
        raise IllegalArgumentException(
            f"{url!r} names no NameNode, and no configuration in HADOOP_CONF_DIR does; write it as"
            f" hdfs://host:{DEFAULT_PORT}/path"
        )
    return hadoop.addresses_behind(hosts) or hosts.split(",")


def default_user() -> str:
    """As whom to call: HADOOP_USER_NAME, or whoever runs this process."""
    return os.environ.get("HADOOP_USER_NAME") or user_name()


def _parse_address(text: str, url: str) -> Address:
    try:
        return Address.parse(text, DEFAULT_PORT)
    except ValueError:
        raise IllegalArgumentException(f"{text!r} in {url!r} is not a host and a port") from None
