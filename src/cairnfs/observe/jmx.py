"""What HDFS tells at /jmx: beans, each a name and attributes, and which of them are asked for."""

from __future__ import annotations

import fnmatch
import gc
import json
import platform
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from cairnfs.observe.figures import CallFigures, Histogram
from cairnfs.observe.process import ProcessFacts

Bean: TypeAlias = dict[str, Any]
"""The first attribute is `name`."""

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30


class BadQuery(ValueError):
    """What is asked for is not said as it should be: HTTP status 400."""


class NotFound(LookupError):
    """There is no such bean or attribute: HTTP status 404."""


def bean(name: str, attributes: Mapping[str, Any], model: str = "") -> Bean:
    """A bean as Hadoop writes it."""
    return {"name": name, "modelerType": model or name.rpartition("=")[2], **attributes}


def matches(name: str, pattern: str) -> bool:
    """Whether an ObjectName is one of those that a pattern means; `*` and `?` are wild.

    A pattern has a domain and keys in any order; a `*` among the keys allows for more of them.
    """
    domain, colon, keys = pattern.partition(":")
    if not colon or not keys:
        raise BadQuery(f"{pattern} is not the name of beans, such as Hadoop:service=NameNode,*")
    own_domain, _, own_keys = name.partition(":")
    if not fnmatch.fnmatchcase(own_domain, domain):
        return False
    own = dict(each.split("=", 1) for each in own_keys.split(","))
    wanted = [each for each in keys.split(",") if each != "*"]
    if any("=" not in each for each in wanted):
        raise BadQuery(f"{pattern} is not the name of beans, such as Hadoop:service=NameNode,*")
    if "*" not in keys.split(",") and len(wanted) != len(own):
        return False
    pairs = (each.split("=", 1) for each in wanted)
    return all(key in own and fnmatch.fnmatchcase(own[key], value) for key, value in pairs)


def choose_beans(beans: Iterable[Bean], query: str | None, get: str | None) -> list[Bean]:
    """What `?qry=` or `?get=bean::attribute` asks for; all beans without either."""
    if get is not None:
        name, colons, attribute = get.partition("::")
        if not colons or not name or not attribute:
            raise BadQuery("query format is not as expected: get=bean::attribute")
        for each in beans:
            if each["name"] == name and attribute in each:
                return [bean(name, {attribute: each[attribute]}, each["modelerType"])]
        raise NotFound(f"No attribute with name {attribute} was found in {name}.")
    return [each for each in beans if matches(each["name"], query or "*:*")]


def render(beans: Iterable[Bean]) -> str:
    return json.dumps({"beans": list(beans)}, indent=2)


# Beans that every node has.


def process_beans(service: str, facts: ProcessFacts) -> list[Bean]:
    """What is asked of a Java machine, as far as it means anything of this process."""
    collections = sum(figures["collections"] for figures in gc.get_stats())
    memory = {
        "committed": facts.virtual_bytes,
        "init": 0,
        "max": -1,
        "used": facts.resident_bytes,
    }
    return [
        bean(
            f"Hadoop:service={service},name=JvmMetrics",
            {
                "tag.Context": "jvm",
                "tag.ProcessName": service,
                "MemNonHeapUsedM": 0.0,
                "MemHeapUsedM": facts.resident_bytes / MEGABYTE,
                "MemHeapCommittedM": facts.resident_bytes / MEGABYTE,
                "MemHeapMaxM": -1.0,
                "MemMaxM": -1.0,
                "GcCount": collections,
                "ThreadsRunnable": facts.threads,
            },
        ),
        bean(
            "java.lang:type=Memory",
            {"HeapMemoryUsage": memory, "NonHeapMemoryUsage": {**memory, "used": 0}},
            "sun.management.MemoryImpl",
        ),
        bean(
            "java.lang:type=Runtime",
            {
                "StartTime": int(facts.started_s * 1000),
                "VmName": platform.python_implementation(),
                "VmVersion": platform.python_version(),
                "SpecVersion": platform.python_version(),
            },
            "sun.management.RuntimeImpl",
        ),
        bean(
            "java.lang:type=OperatingSystem",
            {
                "Name": platform.system(),
                "ProcessCpuTime": int(facts.cpu_s * 1e9),
                "OpenFileDescriptorCount": facts.open_files,
                "MaxFileDescriptorCount": facts.open_files_max,
            },
            "sun.management.OperatingSystemImpl",
        ),
    ]


def rpc_beans(
    service: str, port: int, calls: CallFigures, *, connections: int, under_way: int, waiting: int
) -> list[Bean]:
    """The calls of a server: together, and by method."""
    total = calls.total()
    detailed: dict[str, Any] = {"tag.port": str(port)}
    for method, figures in calls.by_method.items():
        name = method.name[0].upper() + method.name[1:]
        detailed[f"{name}NumOps"] = detailed.get(f"{name}NumOps", 0) + figures.count
        detailed[f"{name}AvgTime"] = average_ms(figures)
    return [
        bean(
            f"Hadoop:service={service},name=RpcActivityForPort{port}",
            {
                "tag.port": str(port),
                "tag.Context": "rpc",
                "RpcQueueTimeNumOps": total.count,
                "RpcQueueTimeAvgTime": 0.0,  # a call is taken up as it arrives
                "RpcProcessingTimeNumOps": total.count,
                "RpcProcessingTimeAvgTime": average_ms(total),
                "NumOpenConnections": connections,
                "CallQueueLength": under_way + waiting,
                "TotalRequests": total.count,
            },
        ),
        bean(f"Hadoop:service={service},name=RpcDetailedActivityForPort{port}", detailed),
    ]


def average_ms(histogram: Histogram) -> float:
    return histogram.sum_s * 1000 / histogram.count if histogram.count else 0.0
