"""This process as the operating system and the interpreter see it."""

from __future__ import annotations

import gc
import os
import platform
import resource
import threading
from dataclasses import dataclass
from pathlib import Path

from cairnfs.observe.prometheus import Family, counter, gauge

_START_TIME = 19  # among the fields of /proc/PID/stat that follow the name; see proc(5)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What it uses now."""

    resident_bytes: int
    virtual_bytes: int
    cpu_s: float
    started_s: float  # since 1970
    threads: int
    open_files: int
    open_files_max: int

    @classmethod
    def gather(cls) -> ProcessFacts:
        virtual, resident = Path("/proc/self/statm").read_text().split()[:2]
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(
            resident_bytes=int(resident) * _PAGE_BYTES,
            virtual_bytes=int(virtual) * _PAGE_BYTES,
            cpu_s=used.ru_utime + used.ru_stime,
            started_s=_started_s(),
            threads=threading.active_count(),
            open_files=len(os.listdir("/proc/self/fd")) - 1,  # one is to list them
            open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )


def process_families(facts: ProcessFacts) -> list[Family]:
    """The metrics that every exporter has, by the names that they all use."""
    collections = counter("python_gc_collections_total", "Collections of cyclic garbage.")
    collected = counter("python_gc_objects_collected_total", "Objects that these have freed.")
    for generation, figures in enumerate(gc.get_stats()):
        collections.add(figures["collections"], generation=str(generation))
        collected.add(figures["collected"], generation=str(generation))
    return [
        counter("process_cpu_seconds_total", "Processor time used.").add(facts.cpu_s),
        gauge("process_resident_memory_bytes", "Memory in use.").add(facts.resident_bytes),
        gauge("process_virtual_memory_bytes", "Address space in use.").add(facts.virtual_bytes),
        gauge("process_start_time_seconds", "When it began, since 1970.").add(facts.started_s),
        gauge("process_open_fds", "Open files and sockets.").add(facts.open_files),
        gauge("process_max_fds", "As many may be open.").add(facts.open_files_max),
        gauge("process_threads", "Threads.").add(facts.threads),
        gauge("python_info", "The interpreter.").add(
            1, implementation=platform.python_implementation(), version=platform.python_version()
        ),
        collections,
        collected,
    ]


def _started_s() -> float:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    boot_s = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime ")
    )
    return boot_s + int(fields[_START_TIME]) / _TICKS_PER_S
