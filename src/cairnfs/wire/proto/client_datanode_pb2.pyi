from cairnfs.wire.proto import hdfs_pb2 as _hdfs_pb2
from cairnfs.wire.proto import reconfiguration_pb2 as _reconfiguration_pb2
from cairnfs.wire.proto import security_pb2 as _security_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetReplicaVisibleLengthRequestProto(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: _hdfs_pb2.ExtendedBlockProto
    def __init__(self, block: _Optional[_Union[_hdfs_pb2.ExtendedBlockProto, _Mapping]] = ...) -> None: ...

class GetReplicaVisibleLengthResponseProto(_message.Message):
    __slots__ = ("length",)
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    length: int
    def __init__(self, length: _Optional[int] = ...) -> None: ...

class RefreshNamenodesRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshNamenodesResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteBlockPoolRequestProto(_message.Message):
    __slots__ = ("blockPool", "force")
    BLOCKPOOL_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    blockPool: str
    force: bool
    def __init__(self, blockPool: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class DeleteBlockPoolResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBlockLocalPathInfoRequestProto(_message.Message):
    __slots__ = ("block", "token")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    block: _hdfs_pb2.ExtendedBlockProto
    token: _security_pb2.TokenProto
    def __init__(self, block: _Optional[_Union[_hdfs_pb2.ExtendedBlockProto, _Mapping]] = ..., token: _Optional[_Union[_security_pb2.TokenProto, _Mapping]] = ...) -> None: ...

class GetBlockLocalPathInfoResponseProto(_message.Message):
    __slots__ = ("block", "localPath", "localMetaPath")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    LOCALPATH_FIELD_NUMBER: _ClassVar[int]
    LOCALMETAPATH_FIELD_NUMBER: _ClassVar[int]
    block: _hdfs_pb2.ExtendedBlockProto
    localPath: str
    localMetaPath: str
    def __init__(self, block: _Optional[_Union[_hdfs_pb2.ExtendedBlockProto, _Mapping]] = ..., localPath: _Optional[str] = ..., localMetaPath: _Optional[str] = ...) -> None: ...

class ShutdownDatanodeRequestProto(_message.Message):
    __slots__ = ("forUpgrade",)
    FORUPGRADE_FIELD_NUMBER: _ClassVar[int]
    forUpgrade: bool
    def __init__(self, forUpgrade: _Optional[bool] = ...) -> None: ...

class ShutdownDatanodeResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EvictWritersRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EvictWritersResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetDatanodeInfoRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetDatanodeInfoResponseProto(_message.Message):
    __slots__ = ("localInfo",)
    LOCALINFO_FIELD_NUMBER: _ClassVar[int]
    localInfo: _hdfs_pb2.DatanodeLocalInfoProto
    def __init__(self, localInfo: _Optional[_Union[_hdfs_pb2.DatanodeLocalInfoProto, _Mapping]] = ...) -> None: ...

class GetVolumeReportRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetVolumeReportResponseProto(_message.Message):
    __slots__ = ("volumeInfo",)
    VOLUMEINFO_FIELD_NUMBER: _ClassVar[int]
    volumeInfo: _containers.RepeatedCompositeFieldContainer[_hdfs_pb2.DatanodeVolumeInfoProto]
    def __init__(self, volumeInfo: _Optional[_Iterable[_Union[_hdfs_pb2.DatanodeVolumeInfoProto, _Mapping]]] = ...) -> None: ...

class TriggerBlockReportRequestProto(_message.Message):
    __slots__ = ("incremental", "nnAddress")
    INCREMENTAL_FIELD_NUMBER: _ClassVar[int]
    NNADDRESS_FIELD_NUMBER: _ClassVar[int]
    incremental: bool
    nnAddress: str
    def __init__(self, incremental: _Optional[bool] = ..., nnAddress: _Optional[str] = ...) -> None: ...

class TriggerBlockReportResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBalancerBandwidthRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetBalancerBandwidthResponseProto(_message.Message):
    __slots__ = ("bandwidth",)
    BANDWIDTH_FIELD_NUMBER: _ClassVar[int]
    bandwidth: int
    def __init__(self, bandwidth: _Optional[int] = ...) -> None: ...

class SubmitDiskBalancerPlanRequestProto(_message.Message):
    __slots__ = ("planID", "plan", "planVersion", "ignoreDateCheck", "planFile")
    PLANID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLANVERSION_FIELD_NUMBER: _ClassVar[int]
    IGNOREDATECHECK_FIELD_NUMBER: _ClassVar[int]
    PLANFILE_FIELD_NUMBER: _ClassVar[int]
    planID: str
    plan: str
    planVersion: int
    ignoreDateCheck: bool
    planFile: str
    def __init__(self, planID: _Optional[str] = ..., plan: _Optional[str] = ..., planVersion: _Optional[int] = ..., ignoreDateCheck: _Optional[bool] = ..., planFile: _Optional[str] = ...) -> None: ...

class SubmitDiskBalancerPlanResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelPlanRequestProto(_message.Message):
    __slots__ = ("planID",)
    PLANID_FIELD_NUMBER: _ClassVar[int]
    planID: str
    def __init__(self, planID: _Optional[str] = ...) -> None: ...

class CancelPlanResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryPlanStatusRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryPlanStatusResponseProto(_message.Message):
    __slots__ = ("result", "planID", "currentStatus", "planFile")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    PLANID_FIELD_NUMBER: _ClassVar[int]
    CURRENTSTATUS_FIELD_NUMBER: _ClassVar[int]
    PLANFILE_FIELD_NUMBER: _ClassVar[int]
    result: int
    planID: str
    currentStatus: str
    planFile: str
    def __init__(self, result: _Optional[int] = ..., planID: _Optional[str] = ..., currentStatus: _Optional[str] = ..., planFile: _Optional[str] = ...) -> None: ...

class DiskBalancerSettingRequestProto(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class DiskBalancerSettingResponseProto(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...
