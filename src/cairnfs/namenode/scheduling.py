"""The schedule duty: snapshots are taken when they are due, and deleted when nobody wants them."""

from __future__ import annotations

import logging

from cairnfs.clock import Clock
from cairnfs.errors import HdfsError
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.schedules import (
    Plan,
    ScheduleInfo,
    list_schedules,
    name_for,
    preview_schedule,
)
from cairnfs.namesystem.snapshots import create_snapshots, delete_snapshot
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

SCHEDULES = "schedules"
LOOK_MS = 10_000  # how often it is looked whether one is due


class Scheduling:
    """Looks at all schedules now and then."""

    def __init__(
        self, runner: Runner, safe_mode: SafeMode, superuser: Caller, clock: Clock
    ) -> None:
        self._runner = runner
        self._safe_mode = safe_mode
        self._superuser = superuser
        self._clock = clock
        self._next_ms = 0

    async def step(self) -> int:
        """Whatever is due."""
        now_ms = self._clock.now_ms()
        if self._safe_mode.is_on or 0 < self._next_ms - now_ms <= LOOK_MS:
            return 0
        self._next_ms = now_ms + LOOK_MS
        for info in await run(self._runner, Call(list_schedules, (self._superuser,))):
            try:
                await self._follow(info)
            except HdfsError as error:  # it was deleted meanwhile, or has too many
                log.warning("the schedule of %s: %s", info.path, error)
        return 0

    async def _follow(self, info: ScheduleInfo) -> None:
        path = FsPath.parse(info.path)
        preview = Call(preview_schedule, (self._superuser, path, info.schedule))
        plan: Plan = await run(self._runner, preview)
        if plan.is_due:
            name = name_for(info.schedule, self._clock.now_ms())
            await run(self._runner, Call(create_snapshots, (self._superuser, (path,), name)))
            log.info("took snapshot %s of %s by its schedule", name, path)
            plan = await run(
                self._runner, Call(preview_schedule, (self._superuser, path, info.schedule))
            )
        for name in plan.deleted:
            await run(self._runner, Call(delete_snapshot, (self._superuser, path, name)))
            log.info("deleted snapshot %s of %s by its schedule", name, path)
