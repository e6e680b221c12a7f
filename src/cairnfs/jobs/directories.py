"""A directory on a cluster, as jobs name it: by URL, for any process."""

from __future__ import annotations

from typing import NamedTuple

import cairnfs
from cairnfs.client.addresses import default_user, parse_url
from cairnfs.client.messages import join_path
from cairnfs.client.records import Snapshot
from cairnfs.errors import FileNotFoundException, IllegalArgumentException, SnapshotException
from cairnfs.jobs.places import Place


class Directory(NamedTuple):
    """Where it is, and as whom to go there."""

    cluster: str  # hdfs://host:8020
    path: str
    user: str

    @classmethod
    def parse(cls, url: str, user: str | None = None) -> Directory:
        if "://" not in url:
            raise IllegalArgumentException(
                f"{url!r} does not say on which cluster: write hdfs://namenode:8020/path"
            )
        location = parse_url(url)
        hosts = ",".join(map(str, location.namenodes))
        path = "/" + "/".join(part for part in location.path.split("/") if part)
        return cls(f"hdfs://{hosts}", path, location.user or user or default_user())

    @property
    def url(self) -> str:
        return f"{self.cluster}{self.path}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Directory:
        return self._replace(path=self.path.rpartition("/")[0] or "/")

    def __truediv__(self, name: str) -> Directory:
        """What is in it; `.` is itself."""
        return self if name == "." else self._replace(path=join_path(self.path, name))

    def connect(self) -> cairnfs.FileSystem:
        return cairnfs.connect(self.cluster, user=self.user)

    def as_place(self) -> Place:
        return Place(self.url, self.user)

    def snapshot(self, name: str) -> Directory:
        return self / ".snapshot" / name


def find_snapshot(fs: cairnfs.FileSystem, directory: Directory, name: str) -> Snapshot:
    """A snapshot that has to be there."""
    status = fs.get_file_info(directory.path)
    if status is None or not status.is_directory:
        raise FileNotFoundException(f"Directory does not exist: {directory.path}")
    found = fs.find_snapshot(directory.path, name) if status.is_snapshottable else None
    if found is not None:
        return found
    listed = fs.list_snapshots(directory.path) if status.is_snapshottable else []
    names = ", ".join(each.status.name for each in listed)
    there_are = f"there are {names}" if names else "there are none: take one with cairn snapshot"
    raise SnapshotException(f"{directory.path} has no snapshot {name!r}; {there_are}")
