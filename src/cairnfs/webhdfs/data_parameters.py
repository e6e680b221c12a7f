"""The parameters of the operations that move data, for who redirects and who serves them."""

from __future__ import annotations

from typing import TypeAlias

from cairnfs.webhdfs.parameters import INT_MAX, SHORT_MAX, Parameters

CREATE, APPEND, OPEN, CHECKSUM = "CREATE", "APPEND", "OPEN", "GETFILECHECKSUM"
DATA_OPERATIONS = {"GET": [OPEN, CHECKSUM], "PUT": [CREATE], "POST": [APPEND]}

CREATE_FLAGS = (
    "CREATE",
    "OVERWRITE",
    "APPEND",
    "SYNC_BLOCK",
    "LAZY_PERSIST",
    "NEW_BLOCK",
    "NO_LOCAL_WRITE",
    "SHOULD_REPLICATE",
    "IGNORE_CLIENT_LOCALITY",
    "NO_LOCAL_RACK",
)

Parameter: TypeAlias = tuple[str, str]


def block_size(parameters: Parameters) -> int | None:
    return parameters.number("blocksize", least=1)


def replication(parameters: Parameters) -> int | None:
    return parameters.number("replication", least=1, type_max=SHORT_MAX)


def buffer_size(parameters: Parameters) -> int | None:
    return parameters.number("buffersize", least=1, type_max=INT_MAX)


def create_flags(parameters: Parameters) -> list[str]:
    return parameters.options("createflag", "org.apache.hadoop.fs.CreateFlag", CREATE_FLAGS)


def given_parameters(operation: str, parameters: Parameters) -> list[Parameter]:
    """Those of an operation that have a value, sorted by name, as Hadoop passes them on."""
    found: dict[str, str] = {}

    def put(name: str, value: int | None, digits: str = "d") -> None:
        if value is not None:
            found[name] = f"{value:{digits}}"

    if operation != CHECKSUM:
        put("buffersize", buffer_size(parameters))
    if operation == OPEN:
        put("length", parameters.number("length"))
        put("offset", parameters.number("offset") or 0)
    if operation == CREATE:
        put("blocksize", block_size(parameters))
        put("replication", replication(parameters))
        put("permission", parameters.mode("permission"), "o")
        put("unmaskedpermission", parameters.mode("unmaskedpermission"), "o")
        found["createflag"] = ",".join(create_flags(parameters))
        found["createparent"] = str(parameters.boolean("createparent", True)).lower()
        found["overwrite"] = str(parameters.boolean("overwrite")).lower()
    return sorted(found.items())
