"""Calls that want to write a file, which may have to be taken from another writer first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from cairnfs.namenode.service import IncomingCall
from cairnfs.namesystem import lease_recovery
from cairnfs.namesystem.block_copies import BlockCopyNeeded, begin_copy
from cairnfs.namesystem.inodes import InodeId
from cairnfs.transaction.calls import Operation

COPY_WAIT_S = 20.0  # for DataNodes to copy a block: a heartbeat, and the time it takes
COPY_POLL_S: Final = 0.1


def run_or_release(
    call: IncomingCall,
    operation: Operation[Any],
    finish: Callable[[Any], None],
    *arguments: object,
) -> None:
    """Run an operation that wants to write a file; take the file from a writer who is gone.

    Then it is run again: that may have closed the file.  And if DataNodes have to copy a block
    first, again and again for a while.  `finish` is told the result.
    """
    call.namenode.safe_mode.check_off(operation.name, arguments)
    _Opening(call, operation, finish, arguments).attempt()


class _Opening:
    """See `run_or_release`.

    An object, since functions that know each other would be left to the garbage collector
    by every create.
    """

    __slots__ = ("_arguments", "_call", "_end_s", "_finish", "_may_release", "_operation")

    def __init__(
        self,
        call: IncomingCall,
        operation: Operation[Any],
        finish: Callable[[Any], None],
        arguments: tuple[object, ...],
    ) -> None:
        self._call = call
        self._operation = operation
        self._finish = finish
        self._arguments = arguments
        self._may_release = True
        self._end_s = 0.0  # of copying; 0: nothing had to be copied yet

    def attempt(self) -> None:
        self._call.start(self._operation, self._done, self._call.caller, *self._arguments)

    def _done(self, result: Any, error: BaseException | None) -> None:
        if error is None:
            self._finish(result)
        elif isinstance(error, lease_recovery.LeaseRecoveryNeeded) and self._may_release:
            self._release(error)
        elif isinstance(error, BlockCopyNeeded) and self._may_copy():
            caller = self._call.caller
            self._call.start(begin_copy, self._copying, caller, error.path, error.block_id)
        else:
            self._call.fail(error)

    def _may_copy(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        self._end_s = self._end_s or now_s + COPY_WAIT_S
        return now_s < self._end_s

    def _copying(self, inode_id: InodeId | None, error: BaseException | None) -> None:
        namenode = self._call.namenode
        if error is not None:
            self._call.fail(error)
            return
        if inode_id is not None and namenode.gives_commands:
            namenode.block_recoveries.hurry(inode_id)
        self._may_release = False
        asyncio.get_running_loop().call_later(COPY_POLL_S, self.attempt)

    def _release(self, needed: lease_recovery.LeaseRecoveryNeeded) -> None:
        limit_ms = self._call.namenode.lease_soft_limit_ms
        self._call.start(lease_recovery.release_lease, self._released, needed.inode_id, limit_ms)

    def _released(self, is_closed: bool | None, error: BaseException | None) -> None:
        if error is not None:
            self._call.fail(error)
        else:
            self._may_release = False
            self.attempt()
