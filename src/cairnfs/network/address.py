"""Hosts and ports."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """Where somebody listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, default_port: int) -> Address:
        """Read `host`, `host:port` or `[v6]:port`; ValueError if it is something else."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or "]" in port:
            host, port = text.strip(), str(default_port)
        host = host.strip("[]")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{text!r} is not a host and a port")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
