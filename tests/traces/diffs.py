"""Whether a report of differences is right (pure).

`explain_difference` compares with what a trace wants, entry by entry.  `contradiction` needs
no such answer: it applies the report to the earlier state and looks whether the later one
comes out, which every report has to do, whichever inodes count as the same.
"""

from __future__ import annotations

from tests.traces.trace import Entries, Listing


def explain_difference(wanted: Entries, optional: Entries, found: Entries) -> str | None:
    """What is missing and what is too much, if anything is."""
    missing = sorted(wanted - found)
    extra = sorted(found - wanted - optional)
    if not missing and not extra:
        return None
    return f"missing {missing}, too much {extra}"


def contradiction(before: Listing, after: Listing, report: Entries) -> str | None:
    """Why this report does not lead from one listing to the other, if it does not."""
    changes = _Changes(report)
    arrived: dict[str, str] = {}
    for path in before:
        new_path = changes.later_path(path)
        if new_path is None:
            continue
        if new_path not in after:
            return f"{path or '/'} should be {new_path or '/'} now, which is not there"
        if new_path in arrived:
            return f"{path} and {arrived[new_path]} are both {new_path} now"
        arrived[new_path] = path
        if before[path] != after[new_path] and path not in changes.modified:
            return f"{path or '/'} has changed into {after[new_path]}, without an M"
    for path in after:
        if path not in arrived and not changes.is_created(path):
            return f"{path} is there now, without a +"
    missing = [path for path in changes.created if path not in after]
    return f"{missing} were created, but are not there" if missing else None


class _Changes:
    """A report, to be asked where things went; paths are absolute in the tree."""

    def __init__(self, report: Entries) -> None:
        paths = {kind: [_absolute(e[1]) for e in report if e[0] == kind] for kind in "M+-"}
        self.modified = set(paths["M"])
        self._deleted = set(paths["-"])
        self._renamed = {_absolute(e[1]): _absolute(e[2]) for e in report if e[0] == "R"}
        self.created = set()
        for path in paths["+"]:
            parent, _, name = path.rpartition("/")
            later = self.later_path(parent)
            self.created.add(f"{later if later is not None else parent}/{name}")

    def later_path(self, path: str) -> str | None:
        """Where something of the earlier state is in the later one; None if it is gone."""
        if path in self._renamed:
            return self._renamed[path]
        if path in self._deleted:
            return None
        if not path:
            return ""
        parent, _, name = path.rpartition("/")
        above = self.later_path(parent)
        return None if above is None else f"{above}/{name}"

    def is_created(self, path: str) -> bool:
        """Whether it, or a directory that it is in, is new."""
        while path:
            if path in self.created:
                return True
            path = path.rpartition("/")[0]
        return False


def _absolute(path: str) -> str:
    return f"/{path}" if path else ""
