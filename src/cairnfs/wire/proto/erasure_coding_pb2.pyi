from cairnfs.wire.proto import hdfs_pb2 as _hdfs_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SetErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("src", "ecPolicyName")
    SRC_FIELD_NUMBER: _ClassVar[int]
    ECPOLICYNAME_FIELD_NUMBER: _ClassVar[int]
    src: str
    ecPolicyName: str
    def __init__(self, src: _Optional[str] = ..., ecPolicyName: _Optional[str] = ...) -> None: ...

class SetErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetErasureCodingPoliciesRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetErasureCodingPoliciesResponseProto(_message.Message):
    __slots__ = ("ecPolicies",)
    ECPOLICIES_FIELD_NUMBER: _ClassVar[int]
    ecPolicies: _containers.RepeatedCompositeFieldContainer[_hdfs_pb2.ErasureCodingPolicyProto]
    def __init__(self, ecPolicies: _Optional[_Iterable[_Union[_hdfs_pb2.ErasureCodingPolicyProto, _Mapping]]] = ...) -> None: ...

class GetErasureCodingCodecsRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetErasureCodingCodecsResponseProto(_message.Message):
    __slots__ = ("codec",)
    CODEC_FIELD_NUMBER: _ClassVar[int]
    codec: _containers.RepeatedCompositeFieldContainer[CodecProto]
    def __init__(self, codec: _Optional[_Iterable[_Union[CodecProto, _Mapping]]] = ...) -> None: ...

class GetErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("src",)
    SRC_FIELD_NUMBER: _ClassVar[int]
    src: str
    def __init__(self, src: _Optional[str] = ...) -> None: ...

class GetErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ("ecPolicy",)
    ECPOLICY_FIELD_NUMBER: _ClassVar[int]
    ecPolicy: _hdfs_pb2.ErasureCodingPolicyProto
    def __init__(self, ecPolicy: _Optional[_Union[_hdfs_pb2.ErasureCodingPolicyProto, _Mapping]] = ...) -> None: ...

class AddErasureCodingPoliciesRequestProto(_message.Message):
    __slots__ = ("ecPolicies",)
    ECPOLICIES_FIELD_NUMBER: _ClassVar[int]
    ecPolicies: _containers.RepeatedCompositeFieldContainer[_hdfs_pb2.ErasureCodingPolicyProto]
    def __init__(self, ecPolicies: _Optional[_Iterable[_Union[_hdfs_pb2.ErasureCodingPolicyProto, _Mapping]]] = ...) -> None: ...

class AddErasureCodingPoliciesResponseProto(_message.Message):
    __slots__ = ("responses",)
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[_hdfs_pb2.AddErasureCodingPolicyResponseProto]
    def __init__(self, responses: _Optional[_Iterable[_Union[_hdfs_pb2.AddErasureCodingPolicyResponseProto, _Mapping]]] = ...) -> None: ...

class RemoveErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("ecPolicyName",)
    ECPOLICYNAME_FIELD_NUMBER: _ClassVar[int]
    ecPolicyName: str
    def __init__(self, ecPolicyName: _Optional[str] = ...) -> None: ...

class RemoveErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EnableErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("ecPolicyName",)
    ECPOLICYNAME_FIELD_NUMBER: _ClassVar[int]
    ecPolicyName: str
    def __init__(self, ecPolicyName: _Optional[str] = ...) -> None: ...

class EnableErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DisableErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("ecPolicyName",)
    ECPOLICYNAME_FIELD_NUMBER: _ClassVar[int]
    ecPolicyName: str
    def __init__(self, ecPolicyName: _Optional[str] = ...) -> None: ...

class DisableErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnsetErasureCodingPolicyRequestProto(_message.Message):
    __slots__ = ("src",)
    SRC_FIELD_NUMBER: _ClassVar[int]
    src: str
    def __init__(self, src: _Optional[str] = ...) -> None: ...

class UnsetErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetECTopologyResultForPoliciesRequestProto(_message.Message):
    __slots__ = ("policies",)
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, policies: _Optional[_Iterable[str]] = ...) -> None: ...

class GetECTopologyResultForPoliciesResponseProto(_message.Message):
    __slots__ = ("response",)
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response: _hdfs_pb2.ECTopologyVerifierResultProto
    def __init__(self, response: _Optional[_Union[_hdfs_pb2.ECTopologyVerifierResultProto, _Mapping]] = ...) -> None: ...

class BlockECReconstructionInfoProto(_message.Message):
    __slots__ = ("block", "sourceDnInfos", "targetDnInfos", "targetStorageUuids", "targetStorageTypes", "liveBlockIndices", "ecPolicy", "excludeReconstructedIndices")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    SOURCEDNINFOS_FIELD_NUMBER: _ClassVar[int]
    TARGETDNINFOS_FIELD_NUMBER: _ClassVar[int]
    TARGETSTORAGEUUIDS_FIELD_NUMBER: _ClassVar[int]
    TARGETSTORAGETYPES_FIELD_NUMBER: _ClassVar[int]
    LIVEBLOCKINDICES_FIELD_NUMBER: _ClassVar[int]
    ECPOLICY_FIELD_NUMBER: _ClassVar[int]
    EXCLUDERECONSTRUCTEDINDICES_FIELD_NUMBER: _ClassVar[int]
    block: _hdfs_pb2.ExtendedBlockProto
    sourceDnInfos: _hdfs_pb2.DatanodeInfosProto
    targetDnInfos: _hdfs_pb2.DatanodeInfosProto
    targetStorageUuids: _hdfs_pb2.StorageUuidsProto
    targetStorageTypes: _hdfs_pb2.StorageTypesProto
    liveBlockIndices: bytes
    ecPolicy: _hdfs_pb2.ErasureCodingPolicyProto
    excludeReconstructedIndices: bytes
    def __init__(self, block: _Optional[_Union[_hdfs_pb2.ExtendedBlockProto, _Mapping]] = ..., sourceDnInfos: _Optional[_Union[_hdfs_pb2.DatanodeInfosProto, _Mapping]] = ..., targetDnInfos: _Optional[_Union[_hdfs_pb2.DatanodeInfosProto, _Mapping]] = ..., targetStorageUuids: _Optional[_Union[_hdfs_pb2.StorageUuidsProto, _Mapping]] = ..., targetStorageTypes: _Optional[_Union[_hdfs_pb2.StorageTypesProto, _Mapping]] = ..., liveBlockIndices: _Optional[bytes] = ..., ecPolicy: _Optional[_Union[_hdfs_pb2.ErasureCodingPolicyProto, _Mapping]] = ..., excludeReconstructedIndices: _Optional[bytes] = ...) -> None: ...

class CodecProto(_message.Message):
    __slots__ = ("codec", "coders")
    CODEC_FIELD_NUMBER: _ClassVar[int]
    CODERS_FIELD_NUMBER: _ClassVar[int]
    codec: str
    coders: str
    def __init__(self, codec: _Optional[str] = ..., coders: _Optional[str] = ...) -> None: ...
