from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateSnapshotsRequestProto(_message.Message):
    __slots__ = ("snapshotRoots", "snapshotName")
    SNAPSHOTROOTS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    snapshotRoots: _containers.RepeatedScalarFieldContainer[str]
    snapshotName: str
    def __init__(self, snapshotRoots: _Optional[_Iterable[str]] = ..., snapshotName: _Optional[str] = ...) -> None: ...

class CreateSnapshotsResponseProto(_message.Message):
    __slots__ = ("snapshotPaths",)
    SNAPSHOTPATHS_FIELD_NUMBER: _ClassVar[int]
    snapshotPaths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, snapshotPaths: _Optional[_Iterable[str]] = ...) -> None: ...

class RollbackSnapshotRequestProto(_message.Message):
    __slots__ = ("path", "snapshotName", "safetyName")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    SAFETYNAME_FIELD_NUMBER: _ClassVar[int]
    path: str
    snapshotName: str
    safetyName: str
    def __init__(self, path: _Optional[str] = ..., snapshotName: _Optional[str] = ..., safetyName: _Optional[str] = ...) -> None: ...

class RollbackSnapshotResponseProto(_message.Message):
    __slots__ = ("safetySnapshot",)
    SAFETYSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    safetySnapshot: str
    def __init__(self, safetySnapshot: _Optional[str] = ...) -> None: ...

class RollbackSnapshotsRequestProto(_message.Message):
    __slots__ = ("paths", "snapshotName")
    PATHS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    snapshotName: str
    def __init__(self, paths: _Optional[_Iterable[str]] = ..., snapshotName: _Optional[str] = ...) -> None: ...

class RollbackSnapshotsResponseProto(_message.Message):
    __slots__ = ("safetySnapshots",)
    SAFETYSNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    safetySnapshots: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, safetySnapshots: _Optional[_Iterable[str]] = ...) -> None: ...

class CommitOutputRequestProto(_message.Message):
    __slots__ = ("src", "dst", "mode")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REPLACE: _ClassVar[CommitOutputRequestProto.Mode]
        ADD: _ClassVar[CommitOutputRequestProto.Mode]
        REPLACE_PARTITIONS: _ClassVar[CommitOutputRequestProto.Mode]
    REPLACE: CommitOutputRequestProto.Mode
    ADD: CommitOutputRequestProto.Mode
    REPLACE_PARTITIONS: CommitOutputRequestProto.Mode
    SRC_FIELD_NUMBER: _ClassVar[int]
    DST_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    src: str
    dst: str
    mode: CommitOutputRequestProto.Mode
    def __init__(self, src: _Optional[str] = ..., dst: _Optional[str] = ..., mode: _Optional[_Union[CommitOutputRequestProto.Mode, str]] = ...) -> None: ...

class CommitOutputResponseProto(_message.Message):
    __slots__ = ("moved", "removed")
    MOVED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    moved: int
    removed: int
    def __init__(self, moved: _Optional[int] = ..., removed: _Optional[int] = ...) -> None: ...

class CloneSnapshotRequestProto(_message.Message):
    __slots__ = ("snapshotRoot", "snapshotName", "destination")
    SNAPSHOTROOT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    snapshotRoot: str
    snapshotName: str
    destination: str
    def __init__(self, snapshotRoot: _Optional[str] = ..., snapshotName: _Optional[str] = ..., destination: _Optional[str] = ...) -> None: ...

class CloneSnapshotResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSnapshotSpaceRequestProto(_message.Message):
    __slots__ = ("snapshotRoot", "snapshotNames")
    SNAPSHOTROOT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTNAMES_FIELD_NUMBER: _ClassVar[int]
    snapshotRoot: str
    snapshotNames: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, snapshotRoot: _Optional[str] = ..., snapshotNames: _Optional[_Iterable[str]] = ...) -> None: ...

class SnapshotSpaceProto(_message.Message):
    __slots__ = ("snapshotName", "referencedBytes", "exclusiveBytes")
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    REFERENCEDBYTES_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVEBYTES_FIELD_NUMBER: _ClassVar[int]
    snapshotName: str
    referencedBytes: int
    exclusiveBytes: int
    def __init__(self, snapshotName: _Optional[str] = ..., referencedBytes: _Optional[int] = ..., exclusiveBytes: _Optional[int] = ...) -> None: ...

class GetSnapshotSpaceResponseProto(_message.Message):
    __slots__ = ("snapshots",)
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    snapshots: _containers.RepeatedCompositeFieldContainer[SnapshotSpaceProto]
    def __init__(self, snapshots: _Optional[_Iterable[_Union[SnapshotSpaceProto, _Mapping]]] = ...) -> None: ...

class GetSnapshotChangesRequestProto(_message.Message):
    __slots__ = ("path", "fromSnapshot", "toSnapshot", "cursor")
    PATH_FIELD_NUMBER: _ClassVar[int]
    FROMSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    TOSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    path: str
    fromSnapshot: str
    toSnapshot: str
    cursor: bytes
    def __init__(self, path: _Optional[str] = ..., fromSnapshot: _Optional[str] = ..., toSnapshot: _Optional[str] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class SnapshotChangeProto(_message.Message):
    __slots__ = ("kind", "path", "otherPath", "txid", "fileId", "fileType", "contentChanged")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CREATED: _ClassVar[SnapshotChangeProto.Kind]
        DELETED: _ClassVar[SnapshotChangeProto.Kind]
        MODIFIED: _ClassVar[SnapshotChangeProto.Kind]
        MOVED_OUT: _ClassVar[SnapshotChangeProto.Kind]
        MOVED_IN: _ClassVar[SnapshotChangeProto.Kind]
    CREATED: SnapshotChangeProto.Kind
    DELETED: SnapshotChangeProto.Kind
    MODIFIED: SnapshotChangeProto.Kind
    MOVED_OUT: SnapshotChangeProto.Kind
    MOVED_IN: SnapshotChangeProto.Kind
    class FileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DIRECTORY: _ClassVar[SnapshotChangeProto.FileType]
        FILE: _ClassVar[SnapshotChangeProto.FileType]
        SYMLINK: _ClassVar[SnapshotChangeProto.FileType]
    DIRECTORY: SnapshotChangeProto.FileType
    FILE: SnapshotChangeProto.FileType
    SYMLINK: SnapshotChangeProto.FileType
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OTHERPATH_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    FILEID_FIELD_NUMBER: _ClassVar[int]
    FILETYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENTCHANGED_FIELD_NUMBER: _ClassVar[int]
    kind: SnapshotChangeProto.Kind
    path: bytes
    otherPath: bytes
    txid: int
    fileId: int
    fileType: SnapshotChangeProto.FileType
    contentChanged: bool
    def __init__(self, kind: _Optional[_Union[SnapshotChangeProto.Kind, str]] = ..., path: _Optional[bytes] = ..., otherPath: _Optional[bytes] = ..., txid: _Optional[int] = ..., fileId: _Optional[int] = ..., fileType: _Optional[_Union[SnapshotChangeProto.FileType, str]] = ..., contentChanged: _Optional[bool] = ...) -> None: ...

class GetSnapshotChangesResponseProto(_message.Message):
    __slots__ = ("changes", "cursor")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[SnapshotChangeProto]
    cursor: bytes
    def __init__(self, changes: _Optional[_Iterable[_Union[SnapshotChangeProto, _Mapping]]] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class RootSnapshotProto(_message.Message):
    __slots__ = ("snapshotName", "txid", "createdMs", "user", "rolledBackMs", "safetySnapshots")
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    CREATEDMS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ROLLEDBACKMS_FIELD_NUMBER: _ClassVar[int]
    SAFETYSNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    snapshotName: str
    txid: int
    createdMs: int
    user: str
    rolledBackMs: int
    safetySnapshots: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, snapshotName: _Optional[str] = ..., txid: _Optional[int] = ..., createdMs: _Optional[int] = ..., user: _Optional[str] = ..., rolledBackMs: _Optional[int] = ..., safetySnapshots: _Optional[_Iterable[str]] = ...) -> None: ...

class TreeCountsProto(_message.Message):
    __slots__ = ("files", "directories", "lengthBytes", "spaceBytes")
    FILES_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    LENGTHBYTES_FIELD_NUMBER: _ClassVar[int]
    SPACEBYTES_FIELD_NUMBER: _ClassVar[int]
    files: int
    directories: int
    lengthBytes: int
    spaceBytes: int
    def __init__(self, files: _Optional[int] = ..., directories: _Optional[int] = ..., lengthBytes: _Optional[int] = ..., spaceBytes: _Optional[int] = ...) -> None: ...

class CreateRootSnapshotRequestProto(_message.Message):
    __slots__ = ("snapshotName",)
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    snapshotName: str
    def __init__(self, snapshotName: _Optional[str] = ...) -> None: ...

class CreateRootSnapshotResponseProto(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: RootSnapshotProto
    def __init__(self, snapshot: _Optional[_Union[RootSnapshotProto, _Mapping]] = ...) -> None: ...

class GetRootSnapshotStatusRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRootSnapshotStatusResponseProto(_message.Message):
    __slots__ = ("snapshot", "then", "now", "lastTxid", "hindrances")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    LASTTXID_FIELD_NUMBER: _ClassVar[int]
    HINDRANCES_FIELD_NUMBER: _ClassVar[int]
    snapshot: RootSnapshotProto
    then: TreeCountsProto
    now: TreeCountsProto
    lastTxid: int
    hindrances: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, snapshot: _Optional[_Union[RootSnapshotProto, _Mapping]] = ..., then: _Optional[_Union[TreeCountsProto, _Mapping]] = ..., now: _Optional[_Union[TreeCountsProto, _Mapping]] = ..., lastTxid: _Optional[int] = ..., hindrances: _Optional[_Iterable[str]] = ...) -> None: ...

class RollbackRootSnapshotRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RollbackRootSnapshotResponseProto(_message.Message):
    __slots__ = ("safetySnapshot",)
    SAFETYSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    safetySnapshot: str
    def __init__(self, safetySnapshot: _Optional[str] = ...) -> None: ...

class FinalizeRootSnapshotRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FinalizeRootSnapshotResponseProto(_message.Message):
    __slots__ = ("deletedSnapshots",)
    DELETEDSNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    deletedSnapshots: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, deletedSnapshots: _Optional[_Iterable[str]] = ...) -> None: ...

class GetSnapshotWorkRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSnapshotWorkResponseProto(_message.Message):
    __slots__ = ("deletedTrees", "deletedSnapshots", "directoriesToSettle", "percentOfSnapshot", "bound", "namenode")
    DELETEDTREES_FIELD_NUMBER: _ClassVar[int]
    DELETEDSNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIESTOSETTLE_FIELD_NUMBER: _ClassVar[int]
    PERCENTOFSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    NAMENODE_FIELD_NUMBER: _ClassVar[int]
    deletedTrees: int
    deletedSnapshots: int
    directoriesToSettle: int
    percentOfSnapshot: int
    bound: int
    namenode: str
    def __init__(self, deletedTrees: _Optional[int] = ..., deletedSnapshots: _Optional[int] = ..., directoriesToSettle: _Optional[int] = ..., percentOfSnapshot: _Optional[int] = ..., bound: _Optional[int] = ..., namenode: _Optional[str] = ...) -> None: ...

class WorkItemProto(_message.Message):
    __slots__ = ("kind", "id", "txid", "begin", "end")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DETACHED: _ClassVar[WorkItemProto.Kind]
        DELETED_SNAPSHOT: _ClassVar[WorkItemProto.Kind]
        TO_SETTLE: _ClassVar[WorkItemProto.Kind]
        POLICY_SCAN: _ClassVar[WorkItemProto.Kind]
    DETACHED: WorkItemProto.Kind
    DELETED_SNAPSHOT: WorkItemProto.Kind
    TO_SETTLE: WorkItemProto.Kind
    POLICY_SCAN: WorkItemProto.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    kind: WorkItemProto.Kind
    id: int
    txid: int
    begin: int
    end: int
    def __init__(self, kind: _Optional[_Union[WorkItemProto.Kind, str]] = ..., id: _Optional[int] = ..., txid: _Optional[int] = ..., begin: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class ListWorkRequestProto(_message.Message):
    __slots__ = ("kinds", "cursor", "rows")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[WorkItemProto.Kind]
    cursor: bytes
    rows: int
    def __init__(self, kinds: _Optional[_Iterable[_Union[WorkItemProto.Kind, str]]] = ..., cursor: _Optional[bytes] = ..., rows: _Optional[int] = ...) -> None: ...

class ListWorkResponseProto(_message.Message):
    __slots__ = ("items", "cursor", "notYet")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    NOTYET_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[WorkItemProto]
    cursor: bytes
    notYet: int
    def __init__(self, items: _Optional[_Iterable[_Union[WorkItemProto, _Mapping]]] = ..., cursor: _Optional[bytes] = ..., notYet: _Optional[int] = ...) -> None: ...

class DoWorkRequestProto(_message.Message):
    __slots__ = ("items", "rows", "limitMs")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LIMITMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[WorkItemProto]
    rows: int
    limitMs: int
    def __init__(self, items: _Optional[_Iterable[_Union[WorkItemProto, _Mapping]]] = ..., rows: _Optional[int] = ..., limitMs: _Optional[int] = ...) -> None: ...

class DoWorkResponseProto(_message.Message):
    __slots__ = ("rows", "done", "left")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    rows: int
    done: int
    left: _containers.RepeatedCompositeFieldContainer[WorkItemProto]
    def __init__(self, rows: _Optional[int] = ..., done: _Optional[int] = ..., left: _Optional[_Iterable[_Union[WorkItemProto, _Mapping]]] = ...) -> None: ...

class SnapshotScheduleProto(_message.Message):
    __slots__ = ("path", "prefix", "hourly", "daily", "weekly", "monthly", "yearly")
    PATH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    HOURLY_FIELD_NUMBER: _ClassVar[int]
    DAILY_FIELD_NUMBER: _ClassVar[int]
    WEEKLY_FIELD_NUMBER: _ClassVar[int]
    MONTHLY_FIELD_NUMBER: _ClassVar[int]
    YEARLY_FIELD_NUMBER: _ClassVar[int]
    path: str
    prefix: str
    hourly: int
    daily: int
    weekly: int
    monthly: int
    yearly: int
    def __init__(self, path: _Optional[str] = ..., prefix: _Optional[str] = ..., hourly: _Optional[int] = ..., daily: _Optional[int] = ..., weekly: _Optional[int] = ..., monthly: _Optional[int] = ..., yearly: _Optional[int] = ...) -> None: ...

class SetSnapshotScheduleRequestProto(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: SnapshotScheduleProto
    def __init__(self, schedule: _Optional[_Union[SnapshotScheduleProto, _Mapping]] = ...) -> None: ...

class SetSnapshotScheduleResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RemoveSnapshotScheduleRequestProto(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    def __init__(self, path: _Optional[str] = ...) -> None: ...

class RemoveSnapshotScheduleResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSnapshotSchedulesRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSnapshotSchedulesResponseProto(_message.Message):
    __slots__ = ("schedules",)
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[SnapshotScheduleProto]
    def __init__(self, schedules: _Optional[_Iterable[_Union[SnapshotScheduleProto, _Mapping]]] = ...) -> None: ...

class PreviewSnapshotScheduleRequestProto(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: SnapshotScheduleProto
    def __init__(self, schedule: _Optional[_Union[SnapshotScheduleProto, _Mapping]] = ...) -> None: ...

class PreviewSnapshotScheduleResponseProto(_message.Message):
    __slots__ = ("kept", "deleted")
    KEPT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    kept: _containers.RepeatedScalarFieldContainer[str]
    deleted: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kept: _Optional[_Iterable[str]] = ..., deleted: _Optional[_Iterable[str]] = ...) -> None: ...

class DeclareXAttrRequestProto(_message.Message):
    __slots__ = ("name", "kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class DeclareXAttrResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetDeclaredXAttrsRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeclaredXAttrProto(_message.Message):
    __slots__ = ("name", "kind", "isUsed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ISUSED_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    isUsed: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., isUsed: _Optional[bool] = ...) -> None: ...

class GetDeclaredXAttrsResponseProto(_message.Message):
    __slots__ = ("declared",)
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    declared: _containers.RepeatedCompositeFieldContainer[DeclaredXAttrProto]
    def __init__(self, declared: _Optional[_Iterable[_Union[DeclaredXAttrProto, _Mapping]]] = ...) -> None: ...

class UnsetXAttrRequestProto(_message.Message):
    __slots__ = ("src", "name")
    SRC_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    src: str
    name: str
    def __init__(self, src: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class UnsetXAttrResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainXAttrsRequestProto(_message.Message):
    __slots__ = ("src", "names")
    SRC_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    src: str
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, src: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class XAttrReasonProto(_message.Message):
    __slots__ = ("cause", "path", "txid")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SET: _ClassVar[XAttrReasonProto.Cause]
        REMOVED: _ClassVar[XAttrReasonProto.Cause]
        UNSET: _ClassVar[XAttrReasonProto.Cause]
        KEPT: _ClassVar[XAttrReasonProto.Cause]
        RENAMED: _ClassVar[XAttrReasonProto.Cause]
        ABOVE_SNAPSHOT: _ClassVar[XAttrReasonProto.Cause]
    SET: XAttrReasonProto.Cause
    REMOVED: XAttrReasonProto.Cause
    UNSET: XAttrReasonProto.Cause
    KEPT: XAttrReasonProto.Cause
    RENAMED: XAttrReasonProto.Cause
    ABOVE_SNAPSHOT: XAttrReasonProto.Cause
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    cause: XAttrReasonProto.Cause
    path: str
    txid: int
    def __init__(self, cause: _Optional[_Union[XAttrReasonProto.Cause, str]] = ..., path: _Optional[str] = ..., txid: _Optional[int] = ...) -> None: ...

class XAttrStepProto(_message.Message):
    __slots__ = ("path", "renamed", "restored", "set", "value", "decided", "decidedValue")
    PATH_FIELD_NUMBER: _ClassVar[int]
    RENAMED_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    DECIDEDVALUE_FIELD_NUMBER: _ClassVar[int]
    path: str
    renamed: int
    restored: int
    set: int
    value: bytes
    decided: int
    decidedValue: bytes
    def __init__(self, path: _Optional[str] = ..., renamed: _Optional[int] = ..., restored: _Optional[int] = ..., set: _Optional[int] = ..., value: _Optional[bytes] = ..., decided: _Optional[int] = ..., decidedValue: _Optional[bytes] = ...) -> None: ...

class XAttrExplanationProto(_message.Message):
    __slots__ = ("name", "kind", "value", "reasons", "steps")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    value: bytes
    reasons: _containers.RepeatedCompositeFieldContainer[XAttrReasonProto]
    steps: _containers.RepeatedCompositeFieldContainer[XAttrStepProto]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., value: _Optional[bytes] = ..., reasons: _Optional[_Iterable[_Union[XAttrReasonProto, _Mapping]]] = ..., steps: _Optional[_Iterable[_Union[XAttrStepProto, _Mapping]]] = ...) -> None: ...

class ExplainXAttrsResponseProto(_message.Message):
    __slots__ = ("explanations",)
    EXPLANATIONS_FIELD_NUMBER: _ClassVar[int]
    explanations: _containers.RepeatedCompositeFieldContainer[XAttrExplanationProto]
    def __init__(self, explanations: _Optional[_Iterable[_Union[XAttrExplanationProto, _Mapping]]] = ...) -> None: ...

class GetPolicyWorkRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PolicyReasonProto(_message.Message):
    __slots__ = ("text", "blocks")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    text: str
    blocks: int
    def __init__(self, text: _Optional[str] = ..., blocks: _Optional[int] = ...) -> None: ...

class GetPolicyWorkResponseProto(_message.Message):
    __slots__ = ("subtrees", "blocks", "unsatisfiedBlocks", "bound", "scannedInodes", "queuedBlocks", "placedBlocks", "reasons", "namenode")
    SUBTREES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    UNSATISFIEDBLOCKS_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    SCANNEDINODES_FIELD_NUMBER: _ClassVar[int]
    QUEUEDBLOCKS_FIELD_NUMBER: _ClassVar[int]
    PLACEDBLOCKS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    NAMENODE_FIELD_NUMBER: _ClassVar[int]
    subtrees: int
    blocks: int
    unsatisfiedBlocks: int
    bound: int
    scannedInodes: int
    queuedBlocks: int
    placedBlocks: int
    reasons: _containers.RepeatedCompositeFieldContainer[PolicyReasonProto]
    namenode: str
    def __init__(self, subtrees: _Optional[int] = ..., blocks: _Optional[int] = ..., unsatisfiedBlocks: _Optional[int] = ..., bound: _Optional[int] = ..., scannedInodes: _Optional[int] = ..., queuedBlocks: _Optional[int] = ..., placedBlocks: _Optional[int] = ..., reasons: _Optional[_Iterable[_Union[PolicyReasonProto, _Mapping]]] = ..., namenode: _Optional[str] = ...) -> None: ...

class BalancerParametersProto(_message.Message):
    __slots__ = ("threshold", "included", "excluded", "sources", "idleIterationsMax")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    INCLUDED_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    IDLEITERATIONSMAX_FIELD_NUMBER: _ClassVar[int]
    threshold: float
    included: _containers.RepeatedScalarFieldContainer[str]
    excluded: _containers.RepeatedScalarFieldContainer[str]
    sources: _containers.RepeatedScalarFieldContainer[str]
    idleIterationsMax: int
    def __init__(self, threshold: _Optional[float] = ..., included: _Optional[_Iterable[str]] = ..., excluded: _Optional[_Iterable[str]] = ..., sources: _Optional[_Iterable[str]] = ..., idleIterationsMax: _Optional[int] = ...) -> None: ...

class BalancingProto(_message.Message):
    __slots__ = ("parameters", "user", "startedMs", "state", "iteration", "movedBytes", "movedBlocks", "leftBytes", "movingBytes", "endedMs")
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    STARTEDMS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    MOVEDBYTES_FIELD_NUMBER: _ClassVar[int]
    MOVEDBLOCKS_FIELD_NUMBER: _ClassVar[int]
    LEFTBYTES_FIELD_NUMBER: _ClassVar[int]
    MOVINGBYTES_FIELD_NUMBER: _ClassVar[int]
    ENDEDMS_FIELD_NUMBER: _ClassVar[int]
    parameters: BalancerParametersProto
    user: str
    startedMs: int
    state: str
    iteration: int
    movedBytes: int
    movedBlocks: int
    leftBytes: int
    movingBytes: int
    endedMs: int
    def __init__(self, parameters: _Optional[_Union[BalancerParametersProto, _Mapping]] = ..., user: _Optional[str] = ..., startedMs: _Optional[int] = ..., state: _Optional[str] = ..., iteration: _Optional[int] = ..., movedBytes: _Optional[int] = ..., movedBlocks: _Optional[int] = ..., leftBytes: _Optional[int] = ..., movingBytes: _Optional[int] = ..., endedMs: _Optional[int] = ...) -> None: ...

class StartBalancingRequestProto(_message.Message):
    __slots__ = ("parameters",)
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    parameters: BalancerParametersProto
    def __init__(self, parameters: _Optional[_Union[BalancerParametersProto, _Mapping]] = ...) -> None: ...

class StartBalancingResponseProto(_message.Message):
    __slots__ = ("balancing",)
    BALANCING_FIELD_NUMBER: _ClassVar[int]
    balancing: BalancingProto
    def __init__(self, balancing: _Optional[_Union[BalancingProto, _Mapping]] = ...) -> None: ...

class StopBalancingRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopBalancingResponseProto(_message.Message):
    __slots__ = ("balancing",)
    BALANCING_FIELD_NUMBER: _ClassVar[int]
    balancing: BalancingProto
    def __init__(self, balancing: _Optional[_Union[BalancingProto, _Mapping]] = ...) -> None: ...

class GetBalancingRequestProto(_message.Message):
    __slots__ = ("parameters",)
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    parameters: BalancerParametersProto
    def __init__(self, parameters: _Optional[_Union[BalancerParametersProto, _Mapping]] = ...) -> None: ...

class NodeShareProto(_message.Message):
    __slots__ = ("node", "rack", "storageType", "capacityBytes", "usedBytes", "level", "mean")
    NODE_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPE_FIELD_NUMBER: _ClassVar[int]
    CAPACITYBYTES_FIELD_NUMBER: _ClassVar[int]
    USEDBYTES_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    node: str
    rack: str
    storageType: str
    capacityBytes: int
    usedBytes: int
    level: str
    mean: float
    def __init__(self, node: _Optional[str] = ..., rack: _Optional[str] = ..., storageType: _Optional[str] = ..., capacityBytes: _Optional[int] = ..., usedBytes: _Optional[int] = ..., level: _Optional[str] = ..., mean: _Optional[float] = ...) -> None: ...

class ExchangeProto(_message.Message):
    __slots__ = ("source", "target", "storageType", "sizeBytes")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPE_FIELD_NUMBER: _ClassVar[int]
    SIZEBYTES_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    storageType: str
    sizeBytes: int
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., storageType: _Optional[str] = ..., sizeBytes: _Optional[int] = ...) -> None: ...

class GetBalancingResponseProto(_message.Message):
    __slots__ = ("balancing", "shares", "exchanges", "leftBytes", "namenode")
    BALANCING_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    EXCHANGES_FIELD_NUMBER: _ClassVar[int]
    LEFTBYTES_FIELD_NUMBER: _ClassVar[int]
    NAMENODE_FIELD_NUMBER: _ClassVar[int]
    balancing: BalancingProto
    shares: _containers.RepeatedCompositeFieldContainer[NodeShareProto]
    exchanges: _containers.RepeatedCompositeFieldContainer[ExchangeProto]
    leftBytes: int
    namenode: str
    def __init__(self, balancing: _Optional[_Union[BalancingProto, _Mapping]] = ..., shares: _Optional[_Iterable[_Union[NodeShareProto, _Mapping]]] = ..., exchanges: _Optional[_Iterable[_Union[ExchangeProto, _Mapping]]] = ..., leftBytes: _Optional[int] = ..., namenode: _Optional[str] = ...) -> None: ...

class ViewProto(_message.Message):
    __slots__ = ("number", "txid", "path", "user", "renewedMs", "format", "label")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    RENEWEDMS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    number: int
    txid: int
    path: str
    user: str
    renewedMs: int
    format: int
    label: str
    def __init__(self, number: _Optional[int] = ..., txid: _Optional[int] = ..., path: _Optional[str] = ..., user: _Optional[str] = ..., renewedMs: _Optional[int] = ..., format: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class OpenViewRequestProto(_message.Message):
    __slots__ = ("path", "txid", "limitMs", "label")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    LIMITMS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    path: str
    txid: int
    limitMs: int
    label: str
    def __init__(self, path: _Optional[str] = ..., txid: _Optional[int] = ..., limitMs: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class OpenViewResponseProto(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: ViewProto
    def __init__(self, view: _Optional[_Union[ViewProto, _Mapping]] = ...) -> None: ...

class RenewViewRequestProto(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class RenewViewResponseProto(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: ViewProto
    def __init__(self, view: _Optional[_Union[ViewProto, _Mapping]] = ...) -> None: ...

class CloseViewRequestProto(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class CloseViewResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListViewsRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListViewsResponseProto(_message.Message):
    __slots__ = ("views",)
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    views: _containers.RepeatedCompositeFieldContainer[ViewProto]
    def __init__(self, views: _Optional[_Iterable[_Union[ViewProto, _Mapping]]] = ...) -> None: ...

class SplitViewRequestProto(_message.Message):
    __slots__ = ("number", "part", "inodes")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    INODES_FIELD_NUMBER: _ClassVar[int]
    number: int
    part: bytes
    inodes: int
    def __init__(self, number: _Optional[int] = ..., part: _Optional[bytes] = ..., inodes: _Optional[int] = ...) -> None: ...

class SplitViewResponseProto(_message.Message):
    __slots__ = ("split",)
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    split: bytes
    def __init__(self, split: _Optional[bytes] = ...) -> None: ...

class ScanViewRequestProto(_message.Message):
    __slots__ = ("number", "part", "cursor", "details")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    number: int
    part: bytes
    cursor: bytes
    details: int
    def __init__(self, number: _Optional[int] = ..., part: _Optional[bytes] = ..., cursor: _Optional[bytes] = ..., details: _Optional[int] = ...) -> None: ...

class ScanViewResponseProto(_message.Message):
    __slots__ = ("page", "cursor", "storages")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    STORAGES_FIELD_NUMBER: _ClassVar[int]
    page: bytes
    cursor: bytes
    storages: bytes
    def __init__(self, page: _Optional[bytes] = ..., cursor: _Optional[bytes] = ..., storages: _Optional[bytes] = ...) -> None: ...

class IsViewCurrentRequestProto(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class IsViewCurrentResponseProto(_message.Message):
    __slots__ = ("isCurrent",)
    ISCURRENT_FIELD_NUMBER: _ClassVar[int]
    isCurrent: bool
    def __init__(self, isCurrent: _Optional[bool] = ...) -> None: ...

class GetViewChangesRequestProto(_message.Message):
    __slots__ = ("fromNumber", "toNumber", "cursor")
    FROMNUMBER_FIELD_NUMBER: _ClassVar[int]
    TONUMBER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    fromNumber: int
    toNumber: int
    cursor: bytes
    def __init__(self, fromNumber: _Optional[int] = ..., toNumber: _Optional[int] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class GetViewChangesResponseProto(_message.Message):
    __slots__ = ("page", "cursor")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    page: bytes
    cursor: bytes
    def __init__(self, page: _Optional[bytes] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class ListAllSnapshotsRequestProto(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: bytes
    def __init__(self, cursor: _Optional[bytes] = ...) -> None: ...

class ListAllSnapshotsResponseProto(_message.Message):
    __slots__ = ("page", "cursor")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    page: bytes
    cursor: bytes
    def __init__(self, page: _Optional[bytes] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class ListLeasesRequestProto(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class ListLeasesResponseProto(_message.Message):
    __slots__ = ("page", "after")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    page: bytes
    after: int
    def __init__(self, page: _Optional[bytes] = ..., after: _Optional[int] = ...) -> None: ...
