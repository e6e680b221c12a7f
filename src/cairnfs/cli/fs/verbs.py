"""The verbs of `cairn fs`: how each is called, what it does, and where it is.

Only this is read for help and completion; a verb's module is imported when it is run.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Entry(NamedTuple):
    """A verb."""

    usage: str
    summary: str
    where: str  # module:function in this package
    has_json: bool = False
    is_local: bool = False  # whether its first arguments are paths on this machine

    @property
    def options(self) -> list[str]:
        """The options that its usage names."""
        found = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", self.usage)
        return list(dict.fromkeys([*found, *(["--json"] if self.has_json else [])]))


_COPY = "[-t <thread count>] [-q <thread pool queue size>]"
_PUT = f"[-f] [-p] [-l] [-d] {_COPY} <localsrc> ... <dst>"
_GET = f"[-f] [-p] [-crc] [-ignoreCrc] {_COPY} <src> ... <localdst>"

_PUT_HELP = """\
Copy files and directories of this machine to the cluster; `-` is standard input.
  -f  overwrite what is there        -p  keep times, owner and mode
  -d  write to the target itself, not to <dst>._COPYING_ first
  -l  one replica only               -t  so many files at the same time"""
_GET_HELP = """\
Copy files and directories of the cluster to this machine.
  -f  overwrite what is there        -p  keep times, owner and mode
  -t  so many files at the same time
  -crc, -ignoreCrc  accepted, without effect: checksums are always verified, and not kept"""

VERBS: dict[str, Entry] = {
    "appendToFile": Entry(
        "[-n] <localsrc> ... <dst>",
        """\
Append files of this machine, or standard input (`-`), to a file, which is made if need be.
  -n  begin a new block""",
        "copying:append_to_file",
        is_local=True,
    ),
    "cat": Entry("[-ignoreCrc] <src> ...", "Write files to standard output.", "reading:cat"),
    "checksum": Entry(
        "[-v] <src> ...",
        """\
Show a checksum of each file, made by the DataNodes; it depends on the block size too.
  -v  show that""",
        "reading:checksum",
        has_json=True,
    ),
    "chgrp": Entry(
        "[-R] GROUP PATH...",
        "Change the group.\n  -R  also of everything below",
        "permissions:chgrp",
    ),
    "chmod": Entry(
        "[-R] <MODE[,MODE]... | OCTALMODE> PATH...",
        """\
Change permissions: 750, 1777 (sticky), u=rwx,g+r,o-w, +X (x for directories), +t.
  -R  also of everything below""",
        "permissions:chmod",
    ),
    "chown": Entry(
        "[-R] [OWNER][:[GROUP]] PATH...",
        "Change owner, group or both; the superuser may.\n  -R  also of everything below",
        "permissions:chown",
    ),
    "concat": Entry(
        "<target path> <src path> <src path> ...",
        "Move the content of files to the end of another, without copying; they are gone then.",
        "making:concat",
    ),
    "copyFromLocal": Entry(_PUT, "The same as put.", "copying:put", is_local=True),
    "copyToLocal": Entry(_GET, "The same as get.", "copying:get"),
    "count": Entry(
        "[-q] [-h] [-v] [-t [<storage type>]] [-u] [-x] [-e] [-s] <path> ...",
        """\
Count directories, files and bytes.
  -q  quotas as well                 -u  quotas and what is left of them only
  -t  by storage type                -h  sizes for people
  -v  with a header                  -x  without snapshots
  -e  the erasure coding policy      -s  what snapshots hold""",
        "space:count",
        has_json=True,
    ),
    "cp": Entry(
        f"[-f] [-p | -p[topax]] [-d] {_COPY} <src> ... <dst>",
        """\
Copy files and directories.
  -f  overwrite what is there
  -p  keep times, owner and permission; or which of them: t, o, p, also ACL (a), xattrs (x)
  -d  write to the target itself, not to <dst>._COPYING_ first
  -t  so many files at the same time""",
        "copying:cp",
    ),
    "createSnapshot": Entry(
        "<snapshotDir> [<snapshotName>]",
        "Take a snapshot of a directory.",
        "attributes:create_snapshot",
        has_json=True,
    ),
    "deleteSnapshot": Entry(
        "<snapshotDir> <snapshotName>", "Delete a snapshot.", "attributes:delete_snapshot"
    ),
    "df": Entry(
        "[-h] [<path> ...]",
        "Show the room of the cluster.\n  -h  sizes for people",
        "space:df",
        has_json=True,
    ),
    "du": Entry(
        "[-s] [-h] [-v] [-x] <path> ...",
        """\
Show the size of everything in a directory: of its content, and with all replicas.
  -s  of the directory as a whole    -h  sizes for people
  -v  with a header                  -x  without snapshots""",
        "space:du",
        has_json=True,
    ),
    "expunge": Entry(
        "[-immediate] [-fs <path>]",
        """\
Delete what has been in the trash for longer than the trash interval.
  -immediate  everything that is there""",
        "removing:expunge",
    ),
    "find": Entry(
        "<path> ... <expression> ...",
        """\
Show everything below the paths that matches.
  -name pattern, -iname pattern  by name; the latter ignores case
  -print, -print0                show it, with a newline or a zero byte at the end
  -a, -and                       both; the same as nothing between them""",
        "listing:find",
        has_json=True,
    ),
    "get": Entry(_GET, _GET_HELP, "copying:get"),
    "getfacl": Entry(
        "[-R] <path>",
        "Show access control lists.\n  -R  also of everything below",
        "acls:getfacl",
        has_json=True,
    ),
    "getfattr": Entry(
        "[-R] {-n name | -d} [-e en] <path>",
        """\
Show extended attributes.
  -n  this one                       -d  all
  -e  as text, hex or base64         -R  also of everything below""",
        "attributes:getfattr",
        has_json=True,
    ),
    "getmerge": Entry(
        "[-nl] [-skip-empty-file] <src> <localdst>",
        """\
Make one file on this machine of all files in a directory.
  -nl  with a newline after each     -skip-empty-file  but not after empty ones""",
        "copying:getmerge",
    ),
    "head": Entry("<file>", "Write the first 1024 bytes to standard output.", "reading:head"),
    "help": Entry("[cmd ...]", "Say what verbs do, all or these.", "main:help"),
    "ls": Entry(
        "[-C] [-d] [-h] [-q] [-R] [-t] [-S] [-r] [-u] [-e] [<path> ...]",
        """\
List what is in directories.
  -R  also below them                -d  directories themselves, not what is in them
  -C  paths only                     -h  sizes for people
  -t  by time, the latest first      -S  by size, the largest first
  -r  the other way round            -u  by and with the time of the last access
  -q  ? for what cannot be printed   -e  the erasure coding policy""",
        "listing:ls",
        has_json=True,
    ),
    "mkdir": Entry(
        "[-p] <path> ...",
        "Make directories.\n  -p  and those above; it is no error if they are there",
        "making:mkdir",
    ),
    "moveFromLocal": Entry(
        "[-f] [-p] [-l] [-d] <localsrc> ... <dst>",
        "The same as put, and delete what has been copied.",
        "copying:move_from_local",
        is_local=True,
    ),
    "moveToLocal": Entry(
        "<src> <localdst>", "Not implemented, as in HDFS.", "copying:move_to_local"
    ),
    "mv": Entry(
        "<src> ... <dst>", "Move files and directories, without copying.", "destinations:mv"
    ),
    "put": Entry(_PUT, _PUT_HELP, "copying:put", is_local=True),
    "renameSnapshot": Entry(
        "<snapshotDir> <oldName> <newName>", "Rename a snapshot.", "attributes:rename_snapshot"
    ),
    "rm": Entry(
        "[-f] [-r|-R] [-skipTrash] [-safely] <src> ...",
        """\
Remove files; where the server has a trash interval, to the trash.
  -r, -R  also directories           -f  what is not there is no error
  -skipTrash  at once, for ever      -safely  ask before more than 100 files go""",
        "removing:rm",
        has_json=True,
    ),
    "rmdir": Entry(
        "[--ignore-fail-on-non-empty] <dir> ...", "Remove empty directories.", "removing:rmdir"
    ),
    "setfacl": Entry(
        "[-R] [{-b|-k} {-m|-x <acl_spec>} <path>]|[--set <acl_spec> <path>]",
        """\
Change access control lists; a spec is text such as user:ada:rw-,default:group::r-x.
  -m  add or change these entries    -x  remove these (without rights)
  --set  these and no others         -b  remove all but what the mode says
  -k  remove default entries         -R  also of everything below""",
        "acls:setfacl",
    ),
    "setfattr": Entry(
        "{-n name [-v value] | -x name} <path>",
        """\
Set or remove an extended attribute.
  -n  its name, such as user.author
  -v  its value: "in quotes", 0x and digits, 0s and base64, or plain
  -x  remove it""",
        "attributes:setfattr",
    ),
    "setrep": Entry(
        "[-R] [-w] <rep> <path> ...",
        """\
Set how many replicas files have, also below directories.
  -w  wait until they do             -R  accepted, without effect""",
        "making:setrep",
        has_json=True,
    ),
    "stat": Entry(
        "[format] <path> ...",
        """\
Show what is known of files, in a format.
  %a %A  mode, as number and letters  %b  size      %F  type       %g %u  group, owner
  %n  name   %o  block size   %r  replication       %x %X  access  %y %Y  change
(capital X and Y: milliseconds since 1970; small: UTC).  Without a format, %y.""",
        "reading:stat",
        has_json=True,
    ),
    "tail": Entry(
        "[-f] [-s <sleep interval>] <file>",
        """\
Write the last 1024 bytes to standard output.
  -f  go on with what is appended    -s  looking every so many milliseconds (5000)""",
        "reading:tail",
    ),
    "test": Entry(
        "-[defswrz] <path>",
        """\
Answer a question about a path by the exit code, 0 for yes.
  -e  exists          -d  is a directory     -f  is a file
  -s  is not empty    -z  is empty           -r, -w  may be read, written""",
        "reading:test",
    ),
    "text": Entry(
        "[-ignoreCrc] <src> ...",
        """\
Write files to standard output as text: gzip, and by their names .bz2 and .deflate,
decompressed; of sequence files, a line for each record.""",
        "reading:text",
    ),
    "touch": Entry(
        "[-a] [-m] [-t TIMESTAMP (yyyyMMdd:HHmmss) ] [-c] <path> ...",
        """\
Set the times of files to now; those that are not there are made, empty.
  -a  of access only                 -m  of change only
  -t  to another time                -c  make none""",
        "making:touch",
    ),
    "touchz": Entry("<path> ...", "Make empty files.", "making:touchz"),
    "truncate": Entry(
        "[-w] <length> <path> ...",
        "Cut files to a length.\n  -w  wait until that is done",
        "making:truncate",
    ),
    "usage": Entry("[cmd ...]", "Show how verbs are called, all or these.", "main:usage"),
}

# Names that Hadoop still takes: the verb and the option that they stand for, and its advice.
DEPRECATED = {
    "lsr": ("ls", "-R", "ls -R"),
    "rmr": ("rm", "-r", "-rm -r"),
    "dus": ("du", "-s", "du -s"),
}
