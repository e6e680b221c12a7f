"""Access control lists: how they change, and what children inherit.

Pure arithmetic on a mode and the entries stored beside it, with the results
and the words of Hadoop's AclTransformation and AclStorage.  Stored entries are
sorted, and leave out what the mode holds: owner, mask (in the group bits) and
other.  Invariant: without an access ACL the group bits are the group's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from cairnfs import acl_text
from cairnfs.errors import AclException
from cairnfs.namesystem.inodes import AclEntry

# The numbers of acl.proto, which are also the order of entries.
ACCESS: Final = 0
DEFAULT: Final = 1
USER: Final = 0
GROUP: Final = 1
MASK: Final = 2
OTHER: Final = 3

ENTRIES_MAX: Final = 32  # in each scope

Acl: TypeAlias = tuple[AclEntry, ...]


def modify_entries(
    mode: int, acl: Acl | None, spec: Iterable[AclEntry], *, is_directory: bool, path: object
) -> tuple[int, Acl | None]:
    """Add entries or replace those of the same scope, type and name."""
    return _change(_merge, mode, acl, spec, is_directory, path)


def remove_entries(
    mode: int, acl: Acl | None, spec: Iterable[AclEntry], *, is_directory: bool, path: object
) -> tuple[int, Acl | None]:
    """Remove entries by scope, type and name; permissions do not matter."""
    return _change(_filter, mode, acl, spec, is_directory, path)


def replace_entries(
    mode: int, acl: Acl | None, spec: Iterable[AclEntry], *, is_directory: bool, path: object
) -> tuple[int, Acl | None]:
    """Replace the whole ACL of each scope that `spec` mentions (setAcl)."""
    entries = list(spec)
    if not entries:
        return remove_all(mode, acl)  # as setAcl does with no entries
    return _change(_replace, mode, acl, entries, is_directory, path)


def remove_default(mode: int, acl: Acl | None) -> tuple[int, Acl | None]:
    """Remove what children would inherit."""
    kept = tuple(entry for entry in acl or () if entry.scope == ACCESS)
    return mode, kept or None


def remove_all(mode: int, acl: Acl | None) -> tuple[int, Acl | None]:
    """Remove every entry; the group's own permission returns to the mode."""
    for entry in acl or ():
        if entry.scope == ACCESS and entry.type == GROUP and entry.name is None:
            return mode & ~0o070 | entry.permission << 3, None
    return mode, None


def inherit_default(
    parent_acl: Acl | None, mode: int, unmasked: int | None, *, is_directory: bool
) -> tuple[int, Acl | None]:
    """The mode and ACL of a new file or directory below `parent_acl`.

    Where there is a default ACL it takes the place of the client's umask, so
    `unmasked` counts if the client sent it (dfs.namenode.posix.acl.inheritance,
    on by default); elsewhere `mode`, which the client has masked, does.
    """
    if not parent_acl or parent_acl[-1].scope != DEFAULT:
        return mode, None
    requested = mode if unmasked is None else unmasked
    defaults = [entry for entry in parent_acl if entry.scope == DEFAULT]
    is_minimal = len(defaults) == 3
    entries: list[AclEntry] = []
    for entry in defaults:
        permission = entry.permission
        # The mode filters the owner, other, and the mask or else the group.
        if entry.type == USER and entry.name is None:
            permission &= requested >> 6
        elif entry.type == MASK or (entry.type == GROUP and is_minimal):
            permission &= requested >> 3
        elif entry.type == OTHER:
            permission &= requested
        entries.append(AclEntry(ACCESS, entry.type, entry.name, permission & 7))
    if is_directory:
        entries += defaults
    return _store(entries, requested)


def minimal_entries(mode: int) -> list[AclEntry]:
    """The three entries that mode bits alone stand for."""
    return [
        AclEntry(ACCESS, USER, None, mode >> 6 & 7),
        AclEntry(ACCESS, GROUP, None, mode >> 3 & 7),
        AclEntry(ACCESS, OTHER, None, mode & 7),
    ]


def logical_entries(mode: int, acl: Acl | None) -> list[AclEntry]:
    """The full ACL, mode bits included, as `getfacl` shows it.

    An AclStatus lists only what is stored, `inode.acl or ()`, with the mode.
    """
    if not acl or acl[0].scope != ACCESS:
        return [*minimal_entries(mode), *(acl or ())]
    return [
        AclEntry(ACCESS, USER, None, mode >> 6 & 7),
        *(entry for entry in acl if entry.scope == ACCESS),
        AclEntry(ACCESS, MASK, None, mode >> 3 & 7),
        AclEntry(ACCESS, OTHER, None, mode & 7),
        *(entry for entry in acl if entry.scope == DEFAULT),
    ]


def parse_spec(text: str, *, with_permissions: bool = True) -> list[AclEntry]:
    """Read "user:bruce:rw-,default:group::r-x"; removals leave permissions out."""
    return [
        AclEntry(*entry) for entry in acl_text.parse_spec(text, with_permissions=with_permissions)
    ]


def format_entry(entry: AclEntry) -> str:
    """One entry in the form `parse_spec` reads."""
    return acl_text.format_entry(entry.scope, entry.type, entry.name, entry.permission)


def format_spec(entries: Iterable[AclEntry]) -> str:
    """Entries in the form `parse_spec` reads."""
    return ",".join(map(format_entry, entries))


_REQUIRED: Final = (USER, GROUP, OTHER)

_Key: TypeAlias = tuple[int, int, str]
_Step: TypeAlias = Callable[[list[AclEntry], list[AclEntry]], list[AclEntry]]


def _key(entry: AclEntry) -> _Key:
    # No name sorts first; an empty one, from the wire, is no name.
    return entry.scope, entry.type, entry.name or ""


def _change(
    step: _Step,
    mode: int,
    acl: Acl | None,
    spec: Iterable[AclEntry],
    is_directory: bool,
    path: object,
) -> tuple[int, Acl | None]:
    try:
        wanted = sorted(map(_without_empty_name, spec), key=_key)
        _check_count(wanted)
        entries = step(logical_entries(mode, acl), wanted)
        if not is_directory and any(entry.scope == DEFAULT for entry in entries):
            raise AclException(
                f"Invalid ACL: only directories may have a default ACL. Path: {path}"
            )
        return _store(entries, mode)
    except AclException as error:
        # FSDirAclOp adds the path to every refusal, named already or not.
        raise AclException(f"{error} Path: {path}") from None


def _merge(existing: list[AclEntry], spec: list[AclEntry]) -> list[AclEntry]:
    # Hadoop lets one of two equal keys in a spec win if the ACL has that key
    # already, and refuses them if not; here they are always refused.
    _check_unique(spec)
    merged = {_key(entry): entry for entry in existing}
    merged.update((_key(entry), entry) for entry in spec)
    return _complete(merged.values(), _scopes(spec), _mask_scopes(spec))


def _filter(existing: list[AclEntry], spec: list[AclEntry]) -> list[AclEntry]:
    unwanted = set(map(_key, spec))
    removed = [entry for entry in existing if _key(entry) in unwanted]
    kept = [entry for entry in existing if _key(entry) not in unwanted]
    return _complete(kept, _scopes(removed), _mask_scopes(removed))


def _replace(existing: list[AclEntry], spec: list[AclEntry]) -> list[AclEntry]:
    _check_unique(spec)
    replaced = _scopes(spec)
    kept = [entry for entry in existing if entry.scope not in replaced]
    return _complete([*spec, *kept], replaced, _mask_scopes(spec))


def _complete(
    entries: Iterable[AclEntry], changed: set[int], mask_changed: set[int]
) -> list[AclEntry]:
    """Add inferred defaults and masks; sort and validate."""
    masks: dict[int, AclEntry] = {}
    by_key: dict[_Key, AclEntry] = {}
    for entry in sorted(entries, key=_key):
        if entry.type == MASK:
            masks[entry.scope] = entry
        else:
            by_key[_key(entry)] = entry

    scopes = _scopes(by_key.values())
    if DEFAULT in scopes:  # what a default ACL leaves out is copied from access
        for type_ in _REQUIRED:
            source = by_key.get((ACCESS, type_, ""))
            if source is not None and (DEFAULT, type_, "") not in by_key:
                copied = AclEntry(DEFAULT, type_, None, source.permission)
                by_key[_key(copied)] = copied

    complete = list(by_key.values())
    for scope in scopes:
        in_scope = [entry for entry in by_key.values() if entry.scope == scope]
        complete += _mask(in_scope, masks.get(scope), scope in changed, scope in mask_changed)
    complete.sort(key=_key)
    _check_valid(complete)
    return complete


def _mask(
    entries: list[AclEntry], given: AclEntry | None, is_changed: bool, mask_is_changed: bool
) -> list[AclEntry]:
    """The mask of one scope: none, the one given, or all the group class has."""
    is_needed = any(entry.name is not None for entry in entries)
    if given is None and is_needed and mask_is_changed:
        raise AclException("Invalid ACL: mask is required and cannot be deleted.")
    if given is not None and (mask_is_changed or not is_changed):
        return [given]
    if not is_needed and given is None:
        return []
    union = 0
    for entry in entries:
        if entry.type == GROUP or entry.name is not None:
            union |= entry.permission
    return [AclEntry(entries[0].scope, MASK, None, union)]


def _store(entries: list[AclEntry], mode: int) -> tuple[int, Acl | None]:
    """Split a full, sorted ACL into the mode and what is stored beside it."""
    access = [entry for entry in entries if entry.scope == ACCESS]
    defaults = [entry for entry in entries if entry.scope == DEFAULT]
    owner, group_or_mask, other = access[0], access[-2], access[-1]
    new_mode = (
        mode & 0o1000 | owner.permission << 6 | group_or_mask.permission << 3 | other.permission
    )
    extended = access[1:-2] if len(access) > 3 else []
    return new_mode, (*extended, *defaults) or None


def _check_valid(entries: list[AclEntry]) -> None:
    for entry in entries:
        if entry.name is not None and entry.type in (MASK, OTHER):
            raise AclException(
                f"Invalid ACL: this entry type must not have a name: {format_entry(entry)}."
            )
    _check_count(entries)
    keys = set(map(_key, entries))
    if any((ACCESS, type_, "") not in keys for type_ in _REQUIRED):
        raise AclException("Invalid ACL: the user, group and other entries are required.")
    if any(scope == DEFAULT for scope, _, _ in keys):
        # The copies from the access ACL make this complete.
        assert all((DEFAULT, type_, "") in keys for type_ in _REQUIRED)


def _check_unique(spec: list[AclEntry]) -> None:
    if len(set(map(_key, spec))) < len(spec):
        raise AclException("Invalid ACL: multiple entries with same scope, type and name.")


def _check_count(entries: Sequence[AclEntry]) -> None:
    for scope, name in ((ACCESS, "access"), (DEFAULT, "default")):
        count = sum(entry.scope == scope for entry in entries)
        if count > ENTRIES_MAX:
            raise AclException(
                f"Invalid ACL: ACL has {count} {name} entries, which exceeds"
                f" maximum of {ENTRIES_MAX}."
            )


def _scopes(entries: Iterable[AclEntry]) -> set[int]:
    return {entry.scope for entry in entries}


def _mask_scopes(entries: Iterable[AclEntry]) -> set[int]:
    return {entry.scope for entry in entries if entry.type == MASK}


def _without_empty_name(entry: AclEntry) -> AclEntry:
    if entry.name == "":
        return AclEntry(entry.scope, entry.type, None, entry.permission)
    return entry
