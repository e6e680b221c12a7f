"""Bulk work on Spark: plan with DataFrames, apply in batches that may be done again.

backup("hdfs://namenode:8020/sales", "monday", "file:///backups/sales")
restore("file:///backups/sales", "hdfs://namenode:8020/sales-again", master="local[2]")
mirror("hdfs://namenode:8020/sales", "hdfs://other:8020/sales")
"""

from cairnfs.jobs.backups import BackupResult, backup, plan_backup
from cairnfs.jobs.batches import BatchSize
from cairnfs.jobs.checking import FsckReport, fsck
from cairnfs.jobs.mirroring import MirrorResult, mirror, plan_mirror
from cairnfs.jobs.plans import Plan, PlanLine
from cairnfs.jobs.progress import JobProgress
from cairnfs.jobs.reclaiming import ReclaimResult, plan_reclaim, reclaim
from cairnfs.jobs.restoring import RestoreResult, plan_restore, restore
from cairnfs.jobs.rolling_back import RollbackResult, plan_rollback, rollback
from cairnfs.jobs.satisfying import SatisfyResult, plan_satisfy, satisfy
from cairnfs.jobs.scrubbing import ScrubResult, plan_scrub, scrub
from cairnfs.jobs.usage import UsageReport, usage

__all__ = [
    "BackupResult",
    "BatchSize",
    "FsckReport",
    "JobProgress",
    "MirrorResult",
    "Plan",
    "PlanLine",
    "ReclaimResult",
    "RestoreResult",
    "RollbackResult",
    "SatisfyResult",
    "ScrubResult",
    "UsageReport",
    "backup",
    "fsck",
    "mirror",
    "plan_backup",
    "plan_mirror",
    "plan_reclaim",
    "plan_restore",
    "plan_rollback",
    "plan_satisfy",
    "plan_scrub",
    "reclaim",
    "restore",
    "rollback",
    "satisfy",
    "scrub",
    "usage",
]
