"""getfacl and setfacl; entries are text such as `default:user:ada:rw-`."""

from __future__ import annotations

from cairnfs.acl_text import DEFAULT, full_entries
from cairnfs.cli.fs.errors import UsageError
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY
from cairnfs.cli.fs.verb import Verb
from cairnfs.client.messages import encode_acl_entries
from cairnfs.errors import IllegalArgumentException


def getfacl(verb: Verb) -> None:
    options = verb.options(0, ANY, "R")
    _check_one_path(verb)

    def show(item: Item) -> None:
        status = item.found
        found = item.remote.get_acl_status(item.path).entries if status.has_acl else []
        entries = full_entries(status.mode, found)
        lines = [f"# file: {item}", f"# owner: {status.owner}", f"# group: {status.group}"]
        if status.mode & 0o1000:
            lines.append(f"# flags: --{'t' if status.mode & 1 else 'T'}")
        for scope in _split_scopes(entries):
            lines += _with_effect(scope)
        verb.show(
            {
                "path": item.text,
                "owner": status.owner,
                "group": status.group,
                "mode": f"{status.mode:04o}",
                "entries": entries,
            },
            "\n".join([*lines, ""]),
        )

    verb.for_each(show, is_recursive="R" in options)


def setfacl(verb: Verb) -> None:
    options = verb.options(0, ANY, "b", "k", "R", "m", "x", "-set")
    removing, changing = options.flags & {"b", "k"}, options.flags & {"m", "x", "-set"}
    if len(removing) + len(changing) > 1:
        raise UsageError("Specified flags contains both remove and modify flags")
    entries = _take_entries(verb, is_removal="x" in options) if changing else []
    _check_one_path(verb)
    if not removing and not changing:
        raise UsageError("Expected one of -b, -k, -m, -x or --set options")

    def change(item: Item) -> None:
        fs, path = item.remote, item.path
        if "b" in options:
            fs.remove_acl(path)
        elif "k" in options:
            fs.remove_default_acl(path)
        else:
            # Of what is below a directory, only directories can hand anything on.
            is_plain = "R" in options and not item.is_directory
            spec = [e for e in entries if not (is_plain and e.startswith(DEFAULT))]
            calls = {"m": fs.modify_acl_entries, "x": fs.remove_acl_entries, "-set": fs.set_acl}
            if spec:
                calls[next(iter(changing))](path, spec)

    verb.for_each(change, is_recursive="R" in options)


def _split_scopes(entries: list[str]) -> tuple[list[str], list[str]]:
    access = [entry for entry in entries if not entry.startswith(DEFAULT)]
    return access, entries[len(access) :]


def _with_effect(entries: list[str]) -> list[str]:
    """Entries of one scope; those that the mask restricts say what is left of them."""
    mask = next((e.rpartition(":")[2] for e in entries if "mask::" in e), None)
    lines = []
    for entry in entries:
        kind, name, rights = entry.removeprefix(DEFAULT).split(":")
        effect = rights if mask is None else _common(rights, mask)
        is_masked = bool(name) or kind == "group"
        lines.append(f"{entry}\t#effective:{effect}" if is_masked and effect != rights else entry)
    return lines


def _common(first: str, second: str) -> str:
    return "".join(a if a == b else "-" for a, b in zip(first, second, strict=True))


def _take_entries(verb: Verb, *, is_removal: bool) -> list[str]:
    if not verb.arguments:
        raise UsageError("Missing arguments: <acl_spec> <path>")
    if len(verb.arguments) < 2:
        raise UsageError("Missing either <acl_spec> or <path>")
    spec = verb.arguments.pop(0)
    entries = [part.strip() for part in spec.split(",") if part.strip()]
    if not entries:
        raise UsageError("Missing <acl_spec> entry")
    try:
        encode_acl_entries(entries, with_permissions=not is_removal)
    except IllegalArgumentException as error:
        raise UsageError(str(error)) from None
    return entries


def _check_one_path(verb: Verb) -> None:
    if not verb.arguments:
        raise UsageError("<path> is missing")
    if len(verb.arguments) > 1:
        raise UsageError("Too many arguments")
