from cairnfs.wire.proto import hdfs_pb2 as _hdfs_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplicaStateProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINALIZED: _ClassVar[ReplicaStateProto]
    RBW: _ClassVar[ReplicaStateProto]
    RWR: _ClassVar[ReplicaStateProto]
    RUR: _ClassVar[ReplicaStateProto]
    TEMPORARY: _ClassVar[ReplicaStateProto]
FINALIZED: ReplicaStateProto
RBW: ReplicaStateProto
RWR: ReplicaStateProto
RUR: ReplicaStateProto
TEMPORARY: ReplicaStateProto

class VersionRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VersionResponseProto(_message.Message):
    __slots__ = ("info",)
    INFO_FIELD_NUMBER: _ClassVar[int]
    info: NamespaceInfoProto
    def __init__(self, info: _Optional[_Union[NamespaceInfoProto, _Mapping]] = ...) -> None: ...

class NamespaceInfoProto(_message.Message):
    __slots__ = ("buildVersion", "unused", "blockPoolID", "storageInfo", "softwareVersion", "capabilities", "state")
    BUILDVERSION_FIELD_NUMBER: _ClassVar[int]
    UNUSED_FIELD_NUMBER: _ClassVar[int]
    BLOCKPOOLID_FIELD_NUMBER: _ClassVar[int]
    STORAGEINFO_FIELD_NUMBER: _ClassVar[int]
    SOFTWAREVERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    buildVersion: str
    unused: int
    blockPoolID: str
    storageInfo: StorageInfoProto
    softwareVersion: str
    capabilities: int
    state: NNHAStatusHeartbeatProto.State
    def __init__(self, buildVersion: _Optional[str] = ..., unused: _Optional[int] = ..., blockPoolID: _Optional[str] = ..., storageInfo: _Optional[_Union[StorageInfoProto, _Mapping]] = ..., softwareVersion: _Optional[str] = ..., capabilities: _Optional[int] = ..., state: _Optional[_Union[NNHAStatusHeartbeatProto.State, str]] = ...) -> None: ...

class StorageInfoProto(_message.Message):
    __slots__ = ("layoutVersion", "namespceID", "clusterID", "cTime")
    LAYOUTVERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPCEID_FIELD_NUMBER: _ClassVar[int]
    CLUSTERID_FIELD_NUMBER: _ClassVar[int]
    CTIME_FIELD_NUMBER: _ClassVar[int]
    layoutVersion: int
    namespceID: int
    clusterID: str
    cTime: int
    def __init__(self, layoutVersion: _Optional[int] = ..., namespceID: _Optional[int] = ..., clusterID: _Optional[str] = ..., cTime: _Optional[int] = ...) -> None: ...

class NNHAStatusHeartbeatProto(_message.Message):
    __slots__ = ("state", "txid")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTIVE: _ClassVar[NNHAStatusHeartbeatProto.State]
        STANDBY: _ClassVar[NNHAStatusHeartbeatProto.State]
        OBSERVER: _ClassVar[NNHAStatusHeartbeatProto.State]
    ACTIVE: NNHAStatusHeartbeatProto.State
    STANDBY: NNHAStatusHeartbeatProto.State
    OBSERVER: NNHAStatusHeartbeatProto.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    state: NNHAStatusHeartbeatProto.State
    txid: int
    def __init__(self, state: _Optional[_Union[NNHAStatusHeartbeatProto.State, str]] = ..., txid: _Optional[int] = ...) -> None: ...

class BlockKeyProto(_message.Message):
    __slots__ = ("keyId", "expiryDate", "keyBytes")
    KEYID_FIELD_NUMBER: _ClassVar[int]
    EXPIRYDATE_FIELD_NUMBER: _ClassVar[int]
    KEYBYTES_FIELD_NUMBER: _ClassVar[int]
    keyId: int
    expiryDate: int
    keyBytes: bytes
    def __init__(self, keyId: _Optional[int] = ..., expiryDate: _Optional[int] = ..., keyBytes: _Optional[bytes] = ...) -> None: ...

class ExportedBlockKeysProto(_message.Message):
    __slots__ = ("isBlockTokenEnabled", "keyUpdateInterval", "tokenLifeTime", "currentKey", "allKeys")
    ISBLOCKTOKENENABLED_FIELD_NUMBER: _ClassVar[int]
    KEYUPDATEINTERVAL_FIELD_NUMBER: _ClassVar[int]
    TOKENLIFETIME_FIELD_NUMBER: _ClassVar[int]
    CURRENTKEY_FIELD_NUMBER: _ClassVar[int]
    ALLKEYS_FIELD_NUMBER: _ClassVar[int]
    isBlockTokenEnabled: bool
    keyUpdateInterval: int
    tokenLifeTime: int
    currentKey: BlockKeyProto
    allKeys: _containers.RepeatedCompositeFieldContainer[BlockKeyProto]
    def __init__(self, isBlockTokenEnabled: _Optional[bool] = ..., keyUpdateInterval: _Optional[int] = ..., tokenLifeTime: _Optional[int] = ..., currentKey: _Optional[_Union[BlockKeyProto, _Mapping]] = ..., allKeys: _Optional[_Iterable[_Union[BlockKeyProto, _Mapping]]] = ...) -> None: ...

class RecoveringBlockProto(_message.Message):
    __slots__ = ("newGenStamp", "block", "truncateBlock", "ecPolicy", "blockIndices")
    NEWGENSTAMP_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    TRUNCATEBLOCK_FIELD_NUMBER: _ClassVar[int]
    ECPOLICY_FIELD_NUMBER: _ClassVar[int]
    BLOCKINDICES_FIELD_NUMBER: _ClassVar[int]
    newGenStamp: int
    block: _hdfs_pb2.LocatedBlockProto
    truncateBlock: _hdfs_pb2.BlockProto
    ecPolicy: _hdfs_pb2.ErasureCodingPolicyProto
    blockIndices: bytes
    def __init__(self, newGenStamp: _Optional[int] = ..., block: _Optional[_Union[_hdfs_pb2.LocatedBlockProto, _Mapping]] = ..., truncateBlock: _Optional[_Union[_hdfs_pb2.BlockProto, _Mapping]] = ..., ecPolicy: _Optional[_Union[_hdfs_pb2.ErasureCodingPolicyProto, _Mapping]] = ..., blockIndices: _Optional[bytes] = ...) -> None: ...

class BlockWithLocationsProto(_message.Message):
    __slots__ = ("block", "datanodeUuids", "storageUuids", "storageTypes", "indices", "dataBlockNum", "cellSize")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    DATANODEUUIDS_FIELD_NUMBER: _ClassVar[int]
    STORAGEUUIDS_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPES_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    DATABLOCKNUM_FIELD_NUMBER: _ClassVar[int]
    CELLSIZE_FIELD_NUMBER: _ClassVar[int]
    block: _hdfs_pb2.BlockProto
    datanodeUuids: _containers.RepeatedScalarFieldContainer[str]
    storageUuids: _containers.RepeatedScalarFieldContainer[str]
    storageTypes: _containers.RepeatedScalarFieldContainer[_hdfs_pb2.StorageTypeProto]
    indices: bytes
    dataBlockNum: int
    cellSize: int
    def __init__(self, block: _Optional[_Union[_hdfs_pb2.BlockProto, _Mapping]] = ..., datanodeUuids: _Optional[_Iterable[str]] = ..., storageUuids: _Optional[_Iterable[str]] = ..., storageTypes: _Optional[_Iterable[_Union[_hdfs_pb2.StorageTypeProto, str]]] = ..., indices: _Optional[bytes] = ..., dataBlockNum: _Optional[int] = ..., cellSize: _Optional[int] = ...) -> None: ...

class BlocksWithLocationsProto(_message.Message):
    __slots__ = ("blocks",)
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    blocks: _containers.RepeatedCompositeFieldContainer[BlockWithLocationsProto]
    def __init__(self, blocks: _Optional[_Iterable[_Union[BlockWithLocationsProto, _Mapping]]] = ...) -> None: ...

class NamenodeRegistrationProto(_message.Message):
    __slots__ = ("rpcAddress", "httpAddress", "storageInfo", "role")
    class NamenodeRoleProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NAMENODE: _ClassVar[NamenodeRegistrationProto.NamenodeRoleProto]
        BACKUP: _ClassVar[NamenodeRegistrationProto.NamenodeRoleProto]
        CHECKPOINT: _ClassVar[NamenodeRegistrationProto.NamenodeRoleProto]
    NAMENODE: NamenodeRegistrationProto.NamenodeRoleProto
    BACKUP: NamenodeRegistrationProto.NamenodeRoleProto
    CHECKPOINT: NamenodeRegistrationProto.NamenodeRoleProto
    RPCADDRESS_FIELD_NUMBER: _ClassVar[int]
    HTTPADDRESS_FIELD_NUMBER: _ClassVar[int]
    STORAGEINFO_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    rpcAddress: str
    httpAddress: str
    storageInfo: StorageInfoProto
    role: NamenodeRegistrationProto.NamenodeRoleProto
    def __init__(self, rpcAddress: _Optional[str] = ..., httpAddress: _Optional[str] = ..., storageInfo: _Optional[_Union[StorageInfoProto, _Mapping]] = ..., role: _Optional[_Union[NamenodeRegistrationProto.NamenodeRoleProto, str]] = ...) -> None: ...

class NamenodeCommandProto(_message.Message):
    __slots__ = ("action", "type", "checkpointCmd")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NamenodeCommand: _ClassVar[NamenodeCommandProto.Type]
        CheckPointCommand: _ClassVar[NamenodeCommandProto.Type]
    NamenodeCommand: NamenodeCommandProto.Type
    CheckPointCommand: NamenodeCommandProto.Type
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTCMD_FIELD_NUMBER: _ClassVar[int]
    action: int
    type: NamenodeCommandProto.Type
    checkpointCmd: CheckpointCommandProto
    def __init__(self, action: _Optional[int] = ..., type: _Optional[_Union[NamenodeCommandProto.Type, str]] = ..., checkpointCmd: _Optional[_Union[CheckpointCommandProto, _Mapping]] = ...) -> None: ...

class CheckpointCommandProto(_message.Message):
    __slots__ = ("signature", "needToReturnImage")
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    NEEDTORETURNIMAGE_FIELD_NUMBER: _ClassVar[int]
    signature: CheckpointSignatureProto
    needToReturnImage: bool
    def __init__(self, signature: _Optional[_Union[CheckpointSignatureProto, _Mapping]] = ..., needToReturnImage: _Optional[bool] = ...) -> None: ...

class CheckpointSignatureProto(_message.Message):
    __slots__ = ("blockPoolId", "mostRecentCheckpointTxId", "curSegmentTxId", "storageInfo")
    BLOCKPOOLID_FIELD_NUMBER: _ClassVar[int]
    MOSTRECENTCHECKPOINTTXID_FIELD_NUMBER: _ClassVar[int]
    CURSEGMENTTXID_FIELD_NUMBER: _ClassVar[int]
    STORAGEINFO_FIELD_NUMBER: _ClassVar[int]
    blockPoolId: str
    mostRecentCheckpointTxId: int
    curSegmentTxId: int
    storageInfo: StorageInfoProto
    def __init__(self, blockPoolId: _Optional[str] = ..., mostRecentCheckpointTxId: _Optional[int] = ..., curSegmentTxId: _Optional[int] = ..., storageInfo: _Optional[_Union[StorageInfoProto, _Mapping]] = ...) -> None: ...

class RemoteEditLogProto(_message.Message):
    __slots__ = ("startTxId", "endTxId", "isInProgress")
    STARTTXID_FIELD_NUMBER: _ClassVar[int]
    ENDTXID_FIELD_NUMBER: _ClassVar[int]
    ISINPROGRESS_FIELD_NUMBER: _ClassVar[int]
    startTxId: int
    endTxId: int
    isInProgress: bool
    def __init__(self, startTxId: _Optional[int] = ..., endTxId: _Optional[int] = ..., isInProgress: _Optional[bool] = ...) -> None: ...

class RemoteEditLogManifestProto(_message.Message):
    __slots__ = ("logs", "committedTxnId")
    LOGS_FIELD_NUMBER: _ClassVar[int]
    COMMITTEDTXNID_FIELD_NUMBER: _ClassVar[int]
    logs: _containers.RepeatedCompositeFieldContainer[RemoteEditLogProto]
    committedTxnId: int
    def __init__(self, logs: _Optional[_Iterable[_Union[RemoteEditLogProto, _Mapping]]] = ..., committedTxnId: _Optional[int] = ...) -> None: ...
