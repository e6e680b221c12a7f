"""du, df and count."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.cli.fs.errors import UsageError
from cairnfs.cli.fs.formats import format_size
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY
from cairnfs.cli.fs.verb import Verb
from cairnfs.cli.output import format_table
from cairnfs.client.records import ContentSummary, QuotaUsage

# How wide columns of `count` are.
_COUNTS = (12, 12, 18)
_QUOTAS = (12, 15, 15, 15)
_TYPE_QUOTAS = (14, 18)
_POLICY = (20,)
_SNAPSHOTS = (18, 24, 24, 28)

TYPES_WITH_QUOTA = ("SSD", "DISK", "ARCHIVE", "PROVIDED", "NVDIMM")


def du(verb: Verb) -> None:
    options = verb.options_and_paths("s", "h", "v", "x")
    rows: list[list[str]] = []

    def measure(item: Item) -> None:
        summary = item.remote.get_content_summary(item.path)
        length, space = summary.length_bytes, summary.space_bytes
        if "x" in options:
            length -= summary.snapshot_length_bytes
            space -= summary.snapshot_space_bytes
        if verb.as_json:
            verb.out.print_json({"path": item.text, "length_bytes": length, "space_bytes": space})
        rows.append([*(format_size(size, "h" in options) for size in (length, space)), item.text])

    for item in verb.expand():
        with verb.telling():
            if item.found.is_directory and "s" not in options:
                for child in item.children():
                    verb.visit(child, measure, is_recursive=False)
            else:
                verb.visit(item, measure, is_recursive=False)
    if rows and not verb.as_json:
        if "v" in options:
            rows.insert(0, ["SIZE", "DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS", "FULL_PATH_NAME"])
        for line in format_table(rows):
            verb.out.print(line)


def df(verb: Verb) -> None:
    options = verb.options(0, ANY, "h")
    verb.arguments = verb.arguments or ["/"]
    rows = [["Filesystem", "Size", "Used", "Available", "Use%"]]

    def measure(item: Item) -> None:
        status = item.remote.get_status()
        sizes = (status.capacity_bytes, status.used_bytes, status.remaining_bytes)
        if verb.as_json:
            keys = ("capacity_bytes", "used_bytes", "remaining_bytes")
            record: dict[str, object] = {"filesystem": item.place.url}
            verb.out.print_json(record | dict(zip(keys, sizes, strict=True)))
        share = status.used_bytes / status.capacity_bytes if status.capacity_bytes else 0
        texts = (format_size(size, "h" in options) for size in sizes)
        rows.append([item.place.url, *texts, f"{share:.0%}"])

    verb.for_each(measure)
    if len(rows) > 1 and not verb.as_json:
        for line in format_table(rows, right=frozenset((1, 2, 3, 4))):
            verb.out.print(line)


def count(verb: Verb) -> None:
    options = verb.options(1, ANY, "q", "h", "v", "u", "x", "e", "s", valued=("t",))
    is_human = "h" in options
    asks_quotas = "q" in options or "u" in options
    types = _parse_types(options.value("t")) if asks_quotas else None
    excludes_snapshots = "x" in options and not asks_quotas
    if "x" in options and asks_quotas:
        verb.out.print("q or u option is given, the -x option is ignored.")

    def show(item: Item) -> None:
        columns: list[str] = []
        record: dict[str, object] = {"path": item.text}
        fs = item.remote
        if "u" in options or types is not None:
            usage = fs.get_quota_usage(item.path)
            columns.append(
                _format_quotas(usage, usage.inodes, is_human)
                if types is None
                else _format_types(usage, types, is_human)
            )
            record |= _quotas_as_json(usage)
        else:
            summary = fs.get_content_summary(item.path)
            if "q" in options:
                inodes = summary.files + summary.directories
                columns.append(_format_quotas(summary, inodes, is_human))
                record |= _quotas_as_json(summary)
            counts = _counts(summary, excludes_snapshots)
            columns.append(_columns(_COUNTS, (format_size(n, is_human) for n in counts)))
            record |= zip(("directories", "files", "length_bytes"), counts, strict=True)
        if "e" in options or "s" in options:
            columns.append(_format_details(fs.get_content_summary(item.path), options.flags))
        verb.show(record, "".join(columns) + item.text)

    if "v" in options and not verb.as_json:
        verb.out.print(_count_header(options.flags, types))
    verb.for_each(show)


def _columns(widths: Iterable[int], values: Iterable[str]) -> str:
    """Values at the right of their columns, each with a blank after it."""
    return "".join(f"{value:>{width}} " for width, value in zip(widths, values, strict=True))


def _parse_types(text: str | None) -> list[str] | None:
    if text is None:
        return None
    if text.lower() in ("", "all"):
        return list(TYPES_WITH_QUOTA)
    types = text.upper().split(",")
    unknown = [each for each in types if each not in (*TYPES_WITH_QUOTA, "RAM_DISK")]
    if unknown:
        raise UsageError(
            f"{unknown[0]} is no storage type; there are {', '.join(TYPES_WITH_QUOTA)}"
        )
    return types


def _counts(summary: ContentSummary, excludes_snapshots: bool) -> tuple[int, int, int]:
    counts = (summary.directories, summary.files, summary.length_bytes)
    if not excludes_snapshots:
        return counts
    return (
        counts[0] - summary.snapshot_directories,
        counts[1] - summary.snapshot_files,
        counts[2] - summary.snapshot_length_bytes,
    )


def _count_header(flags: set[str], types: list[str] | None) -> str:
    header = ""
    if types is not None:
        header = "".join(
            _columns(_TYPE_QUOTAS, (f"{each}_QUOTA", f"REM_{each}_QUOTA")) for each in types
        )
    else:
        if "q" in flags or "u" in flags:
            names = ("QUOTA", "REM_QUOTA", "SPACE_QUOTA", "REM_SPACE_QUOTA")
            header = _columns(_QUOTAS, names)
        if "u" not in flags:
            header += _columns(_COUNTS, ("DIR_COUNT", "FILE_COUNT", "CONTENT_SIZE"))
    if "e" in flags:
        header += _columns(_POLICY, ("ERASURECODING_POLICY",))
    if "s" in flags:
        names = ("LENGTH", "FILE_COUNT", "DIR_COUNT", "SPACE_CONSUMED")
        header += _columns(_SNAPSHOTS, (f"SNAPSHOT_{name}" for name in names))
    return header + "PATHNAME"


def _format_quotas(usage: QuotaUsage | ContentSummary, inodes: int, is_human: bool) -> str:
    names = _format_quota(usage.namespace_quota, inodes, is_human)
    space = _format_quota(usage.space_quota_bytes, usage.space_bytes, is_human)
    return _columns(_QUOTAS, (*names, *space))


def _format_types(usage: QuotaUsage, types: list[str], is_human: bool) -> str:
    parts = []
    for each in types:
        found = usage.types.get(each)
        quota, used = (None, 0) if found is None else (found.quota_bytes, found.used_bytes)
        parts.append(_columns(_TYPE_QUOTAS, _format_quota(quota, used, is_human)))
    return "".join(parts)


def _format_quota(quota: int | None, used: int, is_human: bool) -> tuple[str, str]:
    """The quota, and what is left of it."""
    if quota is None:
        return "none", "inf"
    return format_size(quota, is_human), format_size(quota - used, is_human)


def _format_details(summary: ContentSummary, flags: set[str]) -> str:
    text = ""
    if "e" in flags:
        policy = summary.erasure_coding_policy
        shown = policy if policy == "Replicated" else f"EC:{policy}"
        text += _columns(_POLICY, (shown,))
    if "s" in flags:
        numbers = (
            summary.snapshot_length_bytes,
            summary.snapshot_files,
            summary.snapshot_directories,
            summary.snapshot_space_bytes,
        )
        text += _columns(_SNAPSHOTS, (format_size(number, "h" in flags) for number in numbers))
    return text


def _quotas_as_json(usage: QuotaUsage | ContentSummary) -> dict[str, object]:
    return {
        "namespace_quota": usage.namespace_quota,
        "space_quota_bytes": usage.space_quota_bytes,
        "space_bytes": usage.space_bytes,
    }
