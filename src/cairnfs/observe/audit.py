"""The audit log: who did what to which path, in the words of HDFS (FSNamesystem.audit).

    2026-11-15 15:27:40,123 INFO FSNamesystem.audit: allowed=true⇥ugi=alice (auth:SIMPLE)⇥
    ip=/127.0.0.1⇥cmd=create⇥src=/a⇥dst=null⇥perm=alice:staff:rw-r--r--⇥proto=rpc

Invariant: a call is one line, and its fields are divided by the only tabs in it, whatever
names a client gives to files, users and contexts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from cairnfs.config import AuditSettings
from cairnfs.modes import format_mode
from cairnfs.observe.audit_file import AuditFile

CALLER_CONTEXT_MAX = 128  # hadoop.caller.context.max.size
CALLER_SIGNATURE_MAX = 40  # hadoop.caller.context.signature.max.size


class Owned(Protocol):
    """What has an owner, a group and a mode: an inode, or the status of one."""

    @property
    def owner(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def mode(self) -> int: ...


class AuditLog:
    """Writes a line for each call that it is told of; `write` takes a few microseconds."""

    def __init__(self, file: AuditFile, excluded_commands: Iterable[str] = ()) -> None:
        self.file = file
        self._excluded = frozenset(excluded_commands)
        self._second = 0
        self._second_text = ""

    @classmethod
    def open(cls, settings: AuditSettings) -> AuditLog | None:
        """Begin to write; None if no file is named."""
        if not settings.file:
            return None
        file = AuditFile(
            Path(settings.file).expanduser(),
            file_bytes_max=settings.file_bytes_max,
            files_max=settings.files_max,
        )
        file.start()
        return cls(file, settings.excluded_commands)

    def close(self) -> None:
        self.file.stop()

    def write(
        self,
        *,
        allowed: bool,
        ugi: str,
        address: str,
        command: str,
        src: str | None,
        dst: str | None = None,
        status: Owned | None = None,
        proto: str = "rpc",
        caller_context: str | None = None,
        caller_signature: bytes = b"",
    ) -> None:
        """Put down a call that has ended; `ugi` is `describe_user`'s, `status` what it made."""
        if command in self._excluded:
            return
        perm = "null"
        if status is not None:
            perm = f"{escape(status.owner)}:{escape(status.group)}:{format_mode(status.mode)}"
        line = (
            f"{self._now()} INFO FSNamesystem.audit: allowed={'true' if allowed else 'false'}"
            f"\tugi={ugi}\tip={'/' + address if address else 'null'}\tcmd={command}"
            f"\tsrc={escape(src)}\tdst={escape(dst)}\tperm={perm}\tproto={proto}"
        )
        if caller_context:
            line += f"\tcallerContext={escape(caller_context)[:CALLER_CONTEXT_MAX]}"
            if 0 < len(caller_signature) <= CALLER_SIGNATURE_MAX:
                line += f":{escape(caller_signature.decode(errors='replace'))}"
        self.file.add(line)

    def _now(self) -> str:
        """As log4j writes it: local time, ISO 8601 with a comma."""
        now_ms = time.time_ns() // 1_000_000
        second, ms = divmod(now_ms, 1000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._second_text},{ms:03}"


def describe_user(user: str, real_user: str | None = None) -> str:
    """A user as UserGroupInformation describes itself, safe to be written down."""
    if real_user is None or real_user == user:
        return f"{escape(user)} (auth:SIMPLE)"
    return f"{escape(user)} (auth:PROXY) via {escape(real_user)} (auth:SIMPLE)"


def escape(text: str | None) -> str:
    """As Java's source would write it, so that no name can look like another field or line."""
    if text is None:
        return "null"
    if text.isascii() and text.isprintable() and "\\" not in text and '"' not in text:
        return text
    return "".join(map(_escape_letter, text))


def _escape_letter(letter: str) -> str:
    known = _KNOWN.get(letter)
    if known is not None:
        return known
    code = ord(letter)
    if 0x20 <= code < 0x7F:
        return letter
    if code > 0xFFFF:  # as UTF-16 has it
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
    return f"\\u{code:04X}"


_KNOWN = {
    "\\": "\\\\",
    '"': '\\"',
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\b": "\\b",
    "\f": "\\f",
}
