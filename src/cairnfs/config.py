"""Settings, frozen, one class for each role."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cairnfs.user_name import user_name


class Control(Enum):
    """How concurrent operations are kept apart; see docs/decisions."""

    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"
    SYSTEM_LOCK = "system-lock"


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The audit log."""

    file: str = ""  # none: nothing is written down
    file_bytes_max: int = 256 << 20
    files_max: int = 20  # the newest included
    excluded_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrashSettings:
    """How long what was removed can be had back."""

    interval_min: float = 0.0  # 0: there is no trash
    checkpoint_interval_min: float = 0.0  # 0: as the interval

    @property
    def emptier_interval_ms(self) -> int:
        """Between one look at the trash and the next; 0 if there is none."""
        minutes = self.checkpoint_interval_min
        if not 0 < minutes <= self.interval_min:  # as TrashPolicyDefault
            minutes = self.interval_min
        return int(minutes * 60_000)


@dataclass(frozen=True, slots=True)
class NameNodeSettings:
    """What an operator has a reason to choose.

    `store` is `sqlite:///path/of/file` or `postgresql://...`.
    """

    store: str
    control: Control = Control.OPTIMISTIC
    address: str = "127.0.0.1:8020"  # how other NameNodes and clients name this one
    heartbeat_interval_s: float = 1.0
    expiry_s: float = 4.0  # without a heartbeat, a NameNode is taken for dead
    duties: bool = True  # whether this NameNode takes part in background work
    duty_interval_s: float = 1.0
    excluded_hosts_file: str = ""  # DataNodes that are to leave: a host, or host:port, a line
    safe_mode_threshold: float = 0.999  # of the blocks, to be there before anything is changed
    datanode_stale_after_s: float = 30.0  # without a heartbeat, a DataNode is avoided
    datanode_dead_after_s: float = 630.0  # and at last its replicas are made anew elsewhere
    audit: AuditSettings = AuditSettings()
    trash: TrashSettings = TrashSettings()
    data_through_namenode: bool = False  # whether WebHDFS's clients are spared the DataNodes
    lease_soft_limit_s: float = 60.0  # a writer not heard of for so long may lose its file
    lease_hard_limit_s: float = 1200.0  # and after so long, the file is closed without it
    copy_always: bool = False  # every last block that a snapshot needs, before an append

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", str(self.store))
        object.__setattr__(self, "control", Control(self.control))  # its name will do
        if not 0 <= self.safe_mode_threshold <= 1:
            raise ValueError(
                f"safe_mode_threshold is a part of all blocks, from 0 to 1, not"
                f" {self.safe_mode_threshold}"
            )
        if not 0 < self.lease_soft_limit_s <= self.lease_hard_limit_s:
            raise ValueError(
                f"lease_soft_limit_s ({self.lease_soft_limit_s}) must be more than 0, and not more"
                f" than lease_hard_limit_s ({self.lease_hard_limit_s})"
            )
        if self.expiry_s <= self.heartbeat_interval_s:
            raise ValueError(
                f"expiry_s ({self.expiry_s}) must be longer than heartbeat_interval_s"
                f" ({self.heartbeat_interval_s}): or every NameNode is taken for dead"
            )

    @property
    def lease_soft_limit_ms(self) -> int:
        return int(self.lease_soft_limit_s * 1000)

    @property
    def lease_hard_limit_ms(self) -> int:
        return int(self.lease_hard_limit_s * 1000)


@dataclass(frozen=True, slots=True)
class FormatSettings:
    """What is decided once, when a namespace is made."""

    superuser: str = field(default_factory=user_name)
    supergroup: str = "supergroup"
