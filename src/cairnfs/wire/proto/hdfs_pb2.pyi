from cairnfs.wire.proto import acl_pb2 as _acl_pb2
from cairnfs.wire.proto import security_pb2 as _security_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BlockTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTIGUOUS: _ClassVar[BlockTypeProto]
    STRIPED: _ClassVar[BlockTypeProto]

class StorageTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISK: _ClassVar[StorageTypeProto]
    SSD: _ClassVar[StorageTypeProto]
    ARCHIVE: _ClassVar[StorageTypeProto]
    RAM_DISK: _ClassVar[StorageTypeProto]
    PROVIDED: _ClassVar[StorageTypeProto]
    NVDIMM: _ClassVar[StorageTypeProto]

class ChecksumTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKSUM_NULL: _ClassVar[ChecksumTypeProto]
    CHECKSUM_CRC32: _ClassVar[ChecksumTypeProto]
    CHECKSUM_CRC32C: _ClassVar[ChecksumTypeProto]

class BlockChecksumTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MD5CRC: _ClassVar[BlockChecksumTypeProto]
    COMPOSITE_CRC: _ClassVar[BlockChecksumTypeProto]

class ErasureCodingPolicyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISABLED: _ClassVar[ErasureCodingPolicyState]
    ENABLED: _ClassVar[ErasureCodingPolicyState]
    REMOVED: _ClassVar[ErasureCodingPolicyState]

class CipherSuiteProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[CipherSuiteProto]
    AES_CTR_NOPADDING: _ClassVar[CipherSuiteProto]
    SM4_CTR_NOPADDING: _ClassVar[CipherSuiteProto]

class CryptoProtocolVersionProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_PROTOCOL_VERSION: _ClassVar[CryptoProtocolVersionProto]
    ENCRYPTION_ZONES: _ClassVar[CryptoProtocolVersionProto]

class AccessModeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    READ: _ClassVar[AccessModeProto]
    WRITE: _ClassVar[AccessModeProto]
    COPY: _ClassVar[AccessModeProto]
    REPLACE: _ClassVar[AccessModeProto]
CONTIGUOUS: BlockTypeProto
STRIPED: BlockTypeProto
DISK: StorageTypeProto
SSD: StorageTypeProto
ARCHIVE: StorageTypeProto
RAM_DISK: StorageTypeProto
PROVIDED: StorageTypeProto
NVDIMM: StorageTypeProto
CHECKSUM_NULL: ChecksumTypeProto
CHECKSUM_CRC32: ChecksumTypeProto
CHECKSUM_CRC32C: ChecksumTypeProto
MD5CRC: BlockChecksumTypeProto
COMPOSITE_CRC: BlockChecksumTypeProto
DISABLED: ErasureCodingPolicyState
ENABLED: ErasureCodingPolicyState
REMOVED: ErasureCodingPolicyState
UNKNOWN: CipherSuiteProto
AES_CTR_NOPADDING: CipherSuiteProto
SM4_CTR_NOPADDING: CipherSuiteProto
UNKNOWN_PROTOCOL_VERSION: CryptoProtocolVersionProto
ENCRYPTION_ZONES: CryptoProtocolVersionProto
READ: AccessModeProto
WRITE: AccessModeProto
COPY: AccessModeProto
REPLACE: AccessModeProto

class BlockProto(_message.Message):
    __slots__ = ("blockId", "genStamp", "numBytes")
    BLOCKID_FIELD_NUMBER: _ClassVar[int]
    GENSTAMP_FIELD_NUMBER: _ClassVar[int]
    NUMBYTES_FIELD_NUMBER: _ClassVar[int]
    blockId: int
    genStamp: int
    numBytes: int
    def __init__(self, blockId: _Optional[int] = ..., genStamp: _Optional[int] = ..., numBytes: _Optional[int] = ...) -> None: ...

class ExtendedBlockProto(_message.Message):
    __slots__ = ("poolId", "blockId", "generationStamp", "numBytes")
    POOLID_FIELD_NUMBER: _ClassVar[int]
    BLOCKID_FIELD_NUMBER: _ClassVar[int]
    GENERATIONSTAMP_FIELD_NUMBER: _ClassVar[int]
    NUMBYTES_FIELD_NUMBER: _ClassVar[int]
    poolId: str
    blockId: int
    generationStamp: int
    numBytes: int
    def __init__(self, poolId: _Optional[str] = ..., blockId: _Optional[int] = ..., generationStamp: _Optional[int] = ..., numBytes: _Optional[int] = ...) -> None: ...

class LocatedBlockProto(_message.Message):
    __slots__ = ("b", "offset", "locs", "corrupt", "blockToken", "isCached", "storageTypes", "storageIDs", "blockIndices", "blockTokens")
    B_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOCS_FIELD_NUMBER: _ClassVar[int]
    CORRUPT_FIELD_NUMBER: _ClassVar[int]
    BLOCKTOKEN_FIELD_NUMBER: _ClassVar[int]
    ISCACHED_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPES_FIELD_NUMBER: _ClassVar[int]
    STORAGEIDS_FIELD_NUMBER: _ClassVar[int]
    BLOCKINDICES_FIELD_NUMBER: _ClassVar[int]
    BLOCKTOKENS_FIELD_NUMBER: _ClassVar[int]
    b: ExtendedBlockProto
    offset: int
    locs: _containers.RepeatedCompositeFieldContainer[DatanodeInfoProto]
    corrupt: bool
    blockToken: _security_pb2.TokenProto
    isCached: _containers.RepeatedScalarFieldContainer[bool]
    storageTypes: _containers.RepeatedScalarFieldContainer[StorageTypeProto]
    storageIDs: _containers.RepeatedScalarFieldContainer[str]
    blockIndices: bytes
    blockTokens: _containers.RepeatedCompositeFieldContainer[_security_pb2.TokenProto]
    def __init__(self, b: _Optional[_Union[ExtendedBlockProto, _Mapping]] = ..., offset: _Optional[int] = ..., locs: _Optional[_Iterable[_Union[DatanodeInfoProto, _Mapping]]] = ..., corrupt: _Optional[bool] = ..., blockToken: _Optional[_Union[_security_pb2.TokenProto, _Mapping]] = ..., isCached: _Optional[_Iterable[bool]] = ..., storageTypes: _Optional[_Iterable[_Union[StorageTypeProto, str]]] = ..., storageIDs: _Optional[_Iterable[str]] = ..., blockIndices: _Optional[bytes] = ..., blockTokens: _Optional[_Iterable[_Union[_security_pb2.TokenProto, _Mapping]]] = ...) -> None: ...

class LocatedBlocksProto(_message.Message):
    __slots__ = ("fileLength", "blocks", "underConstruction", "lastBlock", "isLastBlockComplete", "fileEncryptionInfo", "ecPolicy")
    FILELENGTH_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    UNDERCONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    LASTBLOCK_FIELD_NUMBER: _ClassVar[int]
    ISLASTBLOCKCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    FILEENCRYPTIONINFO_FIELD_NUMBER: _ClassVar[int]
    ECPOLICY_FIELD_NUMBER: _ClassVar[int]
    fileLength: int
    blocks: _containers.RepeatedCompositeFieldContainer[LocatedBlockProto]
    underConstruction: bool
    lastBlock: LocatedBlockProto
    isLastBlockComplete: bool
    fileEncryptionInfo: FileEncryptionInfoProto
    ecPolicy: ErasureCodingPolicyProto
    def __init__(self, fileLength: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[LocatedBlockProto, _Mapping]]] = ..., underConstruction: _Optional[bool] = ..., lastBlock: _Optional[_Union[LocatedBlockProto, _Mapping]] = ..., isLastBlockComplete: _Optional[bool] = ..., fileEncryptionInfo: _Optional[_Union[FileEncryptionInfoProto, _Mapping]] = ..., ecPolicy: _Optional[_Union[ErasureCodingPolicyProto, _Mapping]] = ...) -> None: ...

class ProvidedStorageLocationProto(_message.Message):
    __slots__ = ("path", "offset", "length", "nonce")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    path: str
    offset: int
    length: int
    nonce: bytes
    def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., nonce: _Optional[bytes] = ...) -> None: ...

class CorruptFileBlocksProto(_message.Message):
    __slots__ = ("files", "cookie")
    FILES_FIELD_NUMBER: _ClassVar[int]
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedScalarFieldContainer[str]
    cookie: str
    def __init__(self, files: _Optional[_Iterable[str]] = ..., cookie: _Optional[str] = ...) -> None: ...

class DatanodeIDProto(_message.Message):
    __slots__ = ("ipAddr", "hostName", "datanodeUuid", "xferPort", "infoPort", "ipcPort", "infoSecurePort")
    IPADDR_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    DATANODEUUID_FIELD_NUMBER: _ClassVar[int]
    XFERPORT_FIELD_NUMBER: _ClassVar[int]
    INFOPORT_FIELD_NUMBER: _ClassVar[int]
    IPCPORT_FIELD_NUMBER: _ClassVar[int]
    INFOSECUREPORT_FIELD_NUMBER: _ClassVar[int]
    ipAddr: str
    hostName: str
    datanodeUuid: str
    xferPort: int
    infoPort: int
    ipcPort: int
    infoSecurePort: int
    def __init__(self, ipAddr: _Optional[str] = ..., hostName: _Optional[str] = ..., datanodeUuid: _Optional[str] = ..., xferPort: _Optional[int] = ..., infoPort: _Optional[int] = ..., ipcPort: _Optional[int] = ..., infoSecurePort: _Optional[int] = ...) -> None: ...

class DatanodeInfoProto(_message.Message):
    __slots__ = ("id", "capacity", "dfsUsed", "remaining", "blockPoolUsed", "lastUpdate", "xceiverCount", "location", "nonDfsUsed", "adminState", "cacheCapacity", "cacheUsed", "lastUpdateMonotonic", "upgradeDomain", "lastBlockReportTime", "lastBlockReportMonotonic", "numBlocks", "softwareVersion")
    class AdminState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NORMAL: _ClassVar[DatanodeInfoProto.AdminState]
        DECOMMISSION_INPROGRESS: _ClassVar[DatanodeInfoProto.AdminState]
        DECOMMISSIONED: _ClassVar[DatanodeInfoProto.AdminState]
        ENTERING_MAINTENANCE: _ClassVar[DatanodeInfoProto.AdminState]
        IN_MAINTENANCE: _ClassVar[DatanodeInfoProto.AdminState]
    NORMAL: DatanodeInfoProto.AdminState
    DECOMMISSION_INPROGRESS: DatanodeInfoProto.AdminState
    DECOMMISSIONED: DatanodeInfoProto.AdminState
    ENTERING_MAINTENANCE: DatanodeInfoProto.AdminState
    IN_MAINTENANCE: DatanodeInfoProto.AdminState
    ID_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    DFSUSED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    BLOCKPOOLUSED_FIELD_NUMBER: _ClassVar[int]
    LASTUPDATE_FIELD_NUMBER: _ClassVar[int]
    XCEIVERCOUNT_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    NONDFSUSED_FIELD_NUMBER: _ClassVar[int]
    ADMINSTATE_FIELD_NUMBER: _ClassVar[int]
    CACHECAPACITY_FIELD_NUMBER: _ClassVar[int]
    CACHEUSED_FIELD_NUMBER: _ClassVar[int]
    LASTUPDATEMONOTONIC_FIELD_NUMBER: _ClassVar[int]
    UPGRADEDOMAIN_FIELD_NUMBER: _ClassVar[int]
    LASTBLOCKREPORTTIME_FIELD_NUMBER: _ClassVar[int]
    LASTBLOCKREPORTMONOTONIC_FIELD_NUMBER: _ClassVar[int]
    NUMBLOCKS_FIELD_NUMBER: _ClassVar[int]
    SOFTWAREVERSION_FIELD_NUMBER: _ClassVar[int]
    id: DatanodeIDProto
    capacity: int
    dfsUsed: int
    remaining: int
    blockPoolUsed: int
    lastUpdate: int
    xceiverCount: int
    location: str
    nonDfsUsed: int
    adminState: DatanodeInfoProto.AdminState
    cacheCapacity: int
    cacheUsed: int
    lastUpdateMonotonic: int
    upgradeDomain: str
    lastBlockReportTime: int
    lastBlockReportMonotonic: int
    numBlocks: int
    softwareVersion: str
    def __init__(self, id: _Optional[_Union[DatanodeIDProto, _Mapping]] = ..., capacity: _Optional[int] = ..., dfsUsed: _Optional[int] = ..., remaining: _Optional[int] = ..., blockPoolUsed: _Optional[int] = ..., lastUpdate: _Optional[int] = ..., xceiverCount: _Optional[int] = ..., location: _Optional[str] = ..., nonDfsUsed: _Optional[int] = ..., adminState: _Optional[_Union[DatanodeInfoProto.AdminState, str]] = ..., cacheCapacity: _Optional[int] = ..., cacheUsed: _Optional[int] = ..., lastUpdateMonotonic: _Optional[int] = ..., upgradeDomain: _Optional[str] = ..., lastBlockReportTime: _Optional[int] = ..., lastBlockReportMonotonic: _Optional[int] = ..., numBlocks: _Optional[int] = ..., softwareVersion: _Optional[str] = ...) -> None: ...

class DatanodeInfosProto(_message.Message):
    __slots__ = ("datanodes",)
    DATANODES_FIELD_NUMBER: _ClassVar[int]
    datanodes: _containers.RepeatedCompositeFieldContainer[DatanodeInfoProto]
    def __init__(self, datanodes: _Optional[_Iterable[_Union[DatanodeInfoProto, _Mapping]]] = ...) -> None: ...

class DatanodeLocalInfoProto(_message.Message):
    __slots__ = ("softwareVersion", "configVersion", "uptime")
    SOFTWAREVERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIGVERSION_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    softwareVersion: str
    configVersion: str
    uptime: int
    def __init__(self, softwareVersion: _Optional[str] = ..., configVersion: _Optional[str] = ..., uptime: _Optional[int] = ...) -> None: ...

class DatanodeVolumeInfoProto(_message.Message):
    __slots__ = ("path", "storageType", "usedSpace", "freeSpace", "reservedSpace", "reservedSpaceForReplicas", "numBlocks")
    PATH_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPE_FIELD_NUMBER: _ClassVar[int]
    USEDSPACE_FIELD_NUMBER: _ClassVar[int]
    FREESPACE_FIELD_NUMBER: _ClassVar[int]
    RESERVEDSPACE_FIELD_NUMBER: _ClassVar[int]
    RESERVEDSPACEFORREPLICAS_FIELD_NUMBER: _ClassVar[int]
    NUMBLOCKS_FIELD_NUMBER: _ClassVar[int]
    path: str
    storageType: StorageTypeProto
    usedSpace: int
    freeSpace: int
    reservedSpace: int
    reservedSpaceForReplicas: int
    numBlocks: int
    def __init__(self, path: _Optional[str] = ..., storageType: _Optional[_Union[StorageTypeProto, str]] = ..., usedSpace: _Optional[int] = ..., freeSpace: _Optional[int] = ..., reservedSpace: _Optional[int] = ..., reservedSpaceForReplicas: _Optional[int] = ..., numBlocks: _Optional[int] = ...) -> None: ...

class StorageTypesProto(_message.Message):
    __slots__ = ("storageTypes",)
    STORAGETYPES_FIELD_NUMBER: _ClassVar[int]
    storageTypes: _containers.RepeatedScalarFieldContainer[StorageTypeProto]
    def __init__(self, storageTypes: _Optional[_Iterable[_Union[StorageTypeProto, str]]] = ...) -> None: ...

class StorageUuidsProto(_message.Message):
    __slots__ = ("storageUuids",)
    STORAGEUUIDS_FIELD_NUMBER: _ClassVar[int]
    storageUuids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, storageUuids: _Optional[_Iterable[str]] = ...) -> None: ...

class DatanodeStorageProto(_message.Message):
    __slots__ = ("storageUuid", "state", "storageType")
    class StorageState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NORMAL: _ClassVar[DatanodeStorageProto.StorageState]
        READ_ONLY_SHARED: _ClassVar[DatanodeStorageProto.StorageState]
    NORMAL: DatanodeStorageProto.StorageState
    READ_ONLY_SHARED: DatanodeStorageProto.StorageState
    STORAGEUUID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPE_FIELD_NUMBER: _ClassVar[int]
    storageUuid: str
    state: DatanodeStorageProto.StorageState
    storageType: StorageTypeProto
    def __init__(self, storageUuid: _Optional[str] = ..., state: _Optional[_Union[DatanodeStorageProto.StorageState, str]] = ..., storageType: _Optional[_Union[StorageTypeProto, str]] = ...) -> None: ...

class StorageReportProto(_message.Message):
    __slots__ = ("storageUuid", "failed", "capacity", "dfsUsed", "remaining", "blockPoolUsed", "storage", "nonDfsUsed", "mount")
    STORAGEUUID_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    DFSUSED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    BLOCKPOOLUSED_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    NONDFSUSED_FIELD_NUMBER: _ClassVar[int]
    MOUNT_FIELD_NUMBER: _ClassVar[int]
    storageUuid: str
    failed: bool
    capacity: int
    dfsUsed: int
    remaining: int
    blockPoolUsed: int
    storage: DatanodeStorageProto
    nonDfsUsed: int
    mount: str
    def __init__(self, storageUuid: _Optional[str] = ..., failed: _Optional[bool] = ..., capacity: _Optional[int] = ..., dfsUsed: _Optional[int] = ..., remaining: _Optional[int] = ..., blockPoolUsed: _Optional[int] = ..., storage: _Optional[_Union[DatanodeStorageProto, _Mapping]] = ..., nonDfsUsed: _Optional[int] = ..., mount: _Optional[str] = ...) -> None: ...

class HdfsFileStatusProto(_message.Message):
    __slots__ = ("fileType", "path", "length", "permission", "owner", "group", "modification_time", "access_time", "symlink", "block_replication", "blocksize", "locations", "fileId", "childrenNum", "fileEncryptionInfo", "storagePolicy", "ecPolicy", "flags", "namespace")
    class FileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        IS_DIR: _ClassVar[HdfsFileStatusProto.FileType]
        IS_FILE: _ClassVar[HdfsFileStatusProto.FileType]
        IS_SYMLINK: _ClassVar[HdfsFileStatusProto.FileType]
    IS_DIR: HdfsFileStatusProto.FileType
    IS_FILE: HdfsFileStatusProto.FileType
    IS_SYMLINK: HdfsFileStatusProto.FileType
    class Flags(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        HAS_ACL: _ClassVar[HdfsFileStatusProto.Flags]
        HAS_CRYPT: _ClassVar[HdfsFileStatusProto.Flags]
        HAS_EC: _ClassVar[HdfsFileStatusProto.Flags]
        SNAPSHOT_ENABLED: _ClassVar[HdfsFileStatusProto.Flags]
    HAS_ACL: HdfsFileStatusProto.Flags
    HAS_CRYPT: HdfsFileStatusProto.Flags
    HAS_EC: HdfsFileStatusProto.Flags
    SNAPSHOT_ENABLED: HdfsFileStatusProto.Flags
    FILETYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODIFICATION_TIME_FIELD_NUMBER: _ClassVar[int]
    ACCESS_TIME_FIELD_NUMBER: _ClassVar[int]
    SYMLINK_FIELD_NUMBER: _ClassVar[int]
    BLOCK_REPLICATION_FIELD_NUMBER: _ClassVar[int]
    BLOCKSIZE_FIELD_NUMBER: _ClassVar[int]
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    FILEID_FIELD_NUMBER: _ClassVar[int]
    CHILDRENNUM_FIELD_NUMBER: _ClassVar[int]
    FILEENCRYPTIONINFO_FIELD_NUMBER: _ClassVar[int]
    STORAGEPOLICY_FIELD_NUMBER: _ClassVar[int]
    ECPOLICY_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    fileType: HdfsFileStatusProto.FileType
    path: bytes
    length: int
    permission: _acl_pb2.FsPermissionProto
    owner: str
    group: str
    modification_time: int
    access_time: int
    symlink: bytes
    block_replication: int
    blocksize: int
    locations: LocatedBlocksProto
    fileId: int
    childrenNum: int
    fileEncryptionInfo: FileEncryptionInfoProto
    storagePolicy: int
    ecPolicy: ErasureCodingPolicyProto
    flags: int
    namespace: str
    def __init__(self, fileType: _Optional[_Union[HdfsFileStatusProto.FileType, str]] = ..., path: _Optional[bytes] = ..., length: _Optional[int] = ..., permission: _Optional[_Union[_acl_pb2.FsPermissionProto, _Mapping]] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., modification_time: _Optional[int] = ..., access_time: _Optional[int] = ..., symlink: _Optional[bytes] = ..., block_replication: _Optional[int] = ..., blocksize: _Optional[int] = ..., locations: _Optional[_Union[LocatedBlocksProto, _Mapping]] = ..., fileId: _Optional[int] = ..., childrenNum: _Optional[int] = ..., fileEncryptionInfo: _Optional[_Union[FileEncryptionInfoProto, _Mapping]] = ..., storagePolicy: _Optional[int] = ..., ecPolicy: _Optional[_Union[ErasureCodingPolicyProto, _Mapping]] = ..., flags: _Optional[int] = ..., namespace: _Optional[str] = ...) -> None: ...

class HdfsPathHandleProto(_message.Message):
    __slots__ = ("inodeId", "mtime", "path")
    INODEID_FIELD_NUMBER: _ClassVar[int]
    MTIME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    inodeId: int
    mtime: int
    path: str
    def __init__(self, inodeId: _Optional[int] = ..., mtime: _Optional[int] = ..., path: _Optional[str] = ...) -> None: ...

class DirectoryListingProto(_message.Message):
    __slots__ = ("partialListing", "remainingEntries")
    PARTIALLISTING_FIELD_NUMBER: _ClassVar[int]
    REMAININGENTRIES_FIELD_NUMBER: _ClassVar[int]
    partialListing: _containers.RepeatedCompositeFieldContainer[HdfsFileStatusProto]
    remainingEntries: int
    def __init__(self, partialListing: _Optional[_Iterable[_Union[HdfsFileStatusProto, _Mapping]]] = ..., remainingEntries: _Optional[int] = ...) -> None: ...

class BatchedDirectoryListingProto(_message.Message):
    __slots__ = ("partialListing", "parentIdx", "exception")
    PARTIALLISTING_FIELD_NUMBER: _ClassVar[int]
    PARENTIDX_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    partialListing: _containers.RepeatedCompositeFieldContainer[HdfsFileStatusProto]
    parentIdx: int
    exception: RemoteExceptionProto
    def __init__(self, partialListing: _Optional[_Iterable[_Union[HdfsFileStatusProto, _Mapping]]] = ..., parentIdx: _Optional[int] = ..., exception: _Optional[_Union[RemoteExceptionProto, _Mapping]] = ...) -> None: ...

class BatchedListingKeyProto(_message.Message):
    __slots__ = ("checksum", "pathIndex", "startAfter")
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    PATHINDEX_FIELD_NUMBER: _ClassVar[int]
    STARTAFTER_FIELD_NUMBER: _ClassVar[int]
    checksum: bytes
    pathIndex: int
    startAfter: bytes
    def __init__(self, checksum: _Optional[bytes] = ..., pathIndex: _Optional[int] = ..., startAfter: _Optional[bytes] = ...) -> None: ...

class RemoteExceptionProto(_message.Message):
    __slots__ = ("className", "message")
    CLASSNAME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    className: str
    message: str
    def __init__(self, className: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ContentSummaryProto(_message.Message):
    __slots__ = ("length", "fileCount", "directoryCount", "quota", "spaceConsumed", "spaceQuota", "typeQuotaInfos", "snapshotLength", "snapshotFileCount", "snapshotDirectoryCount", "snapshotSpaceConsumed", "erasureCodingPolicy")
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    FILECOUNT_FIELD_NUMBER: _ClassVar[int]
    DIRECTORYCOUNT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    SPACECONSUMED_FIELD_NUMBER: _ClassVar[int]
    SPACEQUOTA_FIELD_NUMBER: _ClassVar[int]
    TYPEQUOTAINFOS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTLENGTH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTFILECOUNT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTDIRECTORYCOUNT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTSPACECONSUMED_FIELD_NUMBER: _ClassVar[int]
    ERASURECODINGPOLICY_FIELD_NUMBER: _ClassVar[int]
    length: int
    fileCount: int
    directoryCount: int
    quota: int
    spaceConsumed: int
    spaceQuota: int
    typeQuotaInfos: StorageTypeQuotaInfosProto
    snapshotLength: int
    snapshotFileCount: int
    snapshotDirectoryCount: int
    snapshotSpaceConsumed: int
    erasureCodingPolicy: str
    def __init__(self, length: _Optional[int] = ..., fileCount: _Optional[int] = ..., directoryCount: _Optional[int] = ..., quota: _Optional[int] = ..., spaceConsumed: _Optional[int] = ..., spaceQuota: _Optional[int] = ..., typeQuotaInfos: _Optional[_Union[StorageTypeQuotaInfosProto, _Mapping]] = ..., snapshotLength: _Optional[int] = ..., snapshotFileCount: _Optional[int] = ..., snapshotDirectoryCount: _Optional[int] = ..., snapshotSpaceConsumed: _Optional[int] = ..., erasureCodingPolicy: _Optional[str] = ...) -> None: ...

class QuotaUsageProto(_message.Message):
    __slots__ = ("fileAndDirectoryCount", "quota", "spaceConsumed", "spaceQuota", "typeQuotaInfos")
    FILEANDDIRECTORYCOUNT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    SPACECONSUMED_FIELD_NUMBER: _ClassVar[int]
    SPACEQUOTA_FIELD_NUMBER: _ClassVar[int]
    TYPEQUOTAINFOS_FIELD_NUMBER: _ClassVar[int]
    fileAndDirectoryCount: int
    quota: int
    spaceConsumed: int
    spaceQuota: int
    typeQuotaInfos: StorageTypeQuotaInfosProto
    def __init__(self, fileAndDirectoryCount: _Optional[int] = ..., quota: _Optional[int] = ..., spaceConsumed: _Optional[int] = ..., spaceQuota: _Optional[int] = ..., typeQuotaInfos: _Optional[_Union[StorageTypeQuotaInfosProto, _Mapping]] = ...) -> None: ...

class StorageTypeQuotaInfosProto(_message.Message):
    __slots__ = ("typeQuotaInfo",)
    TYPEQUOTAINFO_FIELD_NUMBER: _ClassVar[int]
    typeQuotaInfo: _containers.RepeatedCompositeFieldContainer[StorageTypeQuotaInfoProto]
    def __init__(self, typeQuotaInfo: _Optional[_Iterable[_Union[StorageTypeQuotaInfoProto, _Mapping]]] = ...) -> None: ...

class StorageTypeQuotaInfoProto(_message.Message):
    __slots__ = ("type", "quota", "consumed")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_FIELD_NUMBER: _ClassVar[int]
    type: StorageTypeProto
    quota: int
    consumed: int
    def __init__(self, type: _Optional[_Union[StorageTypeProto, str]] = ..., quota: _Optional[int] = ..., consumed: _Optional[int] = ...) -> None: ...

class FsServerDefaultsProto(_message.Message):
    __slots__ = ("blockSize", "bytesPerChecksum", "writePacketSize", "replication", "fileBufferSize", "encryptDataTransfer", "trashInterval", "checksumType", "keyProviderUri", "policyId", "snapshotTrashRootEnabled")
    BLOCKSIZE_FIELD_NUMBER: _ClassVar[int]
    BYTESPERCHECKSUM_FIELD_NUMBER: _ClassVar[int]
    WRITEPACKETSIZE_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FIELD_NUMBER: _ClassVar[int]
    FILEBUFFERSIZE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTDATATRANSFER_FIELD_NUMBER: _ClassVar[int]
    TRASHINTERVAL_FIELD_NUMBER: _ClassVar[int]
    CHECKSUMTYPE_FIELD_NUMBER: _ClassVar[int]
    KEYPROVIDERURI_FIELD_NUMBER: _ClassVar[int]
    POLICYID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTTRASHROOTENABLED_FIELD_NUMBER: _ClassVar[int]
    blockSize: int
    bytesPerChecksum: int
    writePacketSize: int
    replication: int
    fileBufferSize: int
    encryptDataTransfer: bool
    trashInterval: int
    checksumType: ChecksumTypeProto
    keyProviderUri: str
    policyId: int
    snapshotTrashRootEnabled: bool
    def __init__(self, blockSize: _Optional[int] = ..., bytesPerChecksum: _Optional[int] = ..., writePacketSize: _Optional[int] = ..., replication: _Optional[int] = ..., fileBufferSize: _Optional[int] = ..., encryptDataTransfer: _Optional[bool] = ..., trashInterval: _Optional[int] = ..., checksumType: _Optional[_Union[ChecksumTypeProto, str]] = ..., keyProviderUri: _Optional[str] = ..., policyId: _Optional[int] = ..., snapshotTrashRootEnabled: _Optional[bool] = ...) -> None: ...

class BlockStoragePolicyProto(_message.Message):
    __slots__ = ("policyId", "name", "creationPolicy", "creationFallbackPolicy", "replicationFallbackPolicy")
    POLICYID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATIONPOLICY_FIELD_NUMBER: _ClassVar[int]
    CREATIONFALLBACKPOLICY_FIELD_NUMBER: _ClassVar[int]
    REPLICATIONFALLBACKPOLICY_FIELD_NUMBER: _ClassVar[int]
    policyId: int
    name: str
    creationPolicy: StorageTypesProto
    creationFallbackPolicy: StorageTypesProto
    replicationFallbackPolicy: StorageTypesProto
    def __init__(self, policyId: _Optional[int] = ..., name: _Optional[str] = ..., creationPolicy: _Optional[_Union[StorageTypesProto, _Mapping]] = ..., creationFallbackPolicy: _Optional[_Union[StorageTypesProto, _Mapping]] = ..., replicationFallbackPolicy: _Optional[_Union[StorageTypesProto, _Mapping]] = ...) -> None: ...

class BlockChecksumOptionsProto(_message.Message):
    __slots__ = ("blockChecksumType", "stripeLength")
    BLOCKCHECKSUMTYPE_FIELD_NUMBER: _ClassVar[int]
    STRIPELENGTH_FIELD_NUMBER: _ClassVar[int]
    blockChecksumType: BlockChecksumTypeProto
    stripeLength: int
    def __init__(self, blockChecksumType: _Optional[_Union[BlockChecksumTypeProto, str]] = ..., stripeLength: _Optional[int] = ...) -> None: ...

class SnapshottableDirectoryStatusProto(_message.Message):
    __slots__ = ("dirStatus", "snapshot_quota", "snapshot_number", "parent_fullpath")
    DIRSTATUS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_QUOTA_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARENT_FULLPATH_FIELD_NUMBER: _ClassVar[int]
    dirStatus: HdfsFileStatusProto
    snapshot_quota: int
    snapshot_number: int
    parent_fullpath: bytes
    def __init__(self, dirStatus: _Optional[_Union[HdfsFileStatusProto, _Mapping]] = ..., snapshot_quota: _Optional[int] = ..., snapshot_number: _Optional[int] = ..., parent_fullpath: _Optional[bytes] = ...) -> None: ...

class SnapshottableDirectoryListingProto(_message.Message):
    __slots__ = ("snapshottableDirListing",)
    SNAPSHOTTABLEDIRLISTING_FIELD_NUMBER: _ClassVar[int]
    snapshottableDirListing: _containers.RepeatedCompositeFieldContainer[SnapshottableDirectoryStatusProto]
    def __init__(self, snapshottableDirListing: _Optional[_Iterable[_Union[SnapshottableDirectoryStatusProto, _Mapping]]] = ...) -> None: ...

class SnapshotStatusProto(_message.Message):
    __slots__ = ("dirStatus", "snapshotID", "parent_fullpath", "isDeleted")
    DIRSTATUS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTID_FIELD_NUMBER: _ClassVar[int]
    PARENT_FULLPATH_FIELD_NUMBER: _ClassVar[int]
    ISDELETED_FIELD_NUMBER: _ClassVar[int]
    dirStatus: HdfsFileStatusProto
    snapshotID: int
    parent_fullpath: bytes
    isDeleted: bool
    def __init__(self, dirStatus: _Optional[_Union[HdfsFileStatusProto, _Mapping]] = ..., snapshotID: _Optional[int] = ..., parent_fullpath: _Optional[bytes] = ..., isDeleted: _Optional[bool] = ...) -> None: ...

class SnapshotListingProto(_message.Message):
    __slots__ = ("snapshotListing",)
    SNAPSHOTLISTING_FIELD_NUMBER: _ClassVar[int]
    snapshotListing: _containers.RepeatedCompositeFieldContainer[SnapshotStatusProto]
    def __init__(self, snapshotListing: _Optional[_Iterable[_Union[SnapshotStatusProto, _Mapping]]] = ...) -> None: ...

class SnapshotInfoProto(_message.Message):
    __slots__ = ("snapshotName", "snapshotRoot", "permission", "owner", "group", "createTime")
    SNAPSHOTNAME_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTROOT_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATETIME_FIELD_NUMBER: _ClassVar[int]
    snapshotName: str
    snapshotRoot: str
    permission: _acl_pb2.FsPermissionProto
    owner: str
    group: str
    createTime: str
    def __init__(self, snapshotName: _Optional[str] = ..., snapshotRoot: _Optional[str] = ..., permission: _Optional[_Union[_acl_pb2.FsPermissionProto, _Mapping]] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., createTime: _Optional[str] = ...) -> None: ...

class SnapshotDiffReportProto(_message.Message):
    __slots__ = ("snapshotRoot", "fromSnapshot", "toSnapshot", "diffReportEntries")
    SNAPSHOTROOT_FIELD_NUMBER: _ClassVar[int]
    FROMSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    TOSNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DIFFREPORTENTRIES_FIELD_NUMBER: _ClassVar[int]
    snapshotRoot: str
    fromSnapshot: str
    toSnapshot: str
    diffReportEntries: _containers.RepeatedCompositeFieldContainer[SnapshotDiffReportEntryProto]
    def __init__(self, snapshotRoot: _Optional[str] = ..., fromSnapshot: _Optional[str] = ..., toSnapshot: _Optional[str] = ..., diffReportEntries: _Optional[_Iterable[_Union[SnapshotDiffReportEntryProto, _Mapping]]] = ...) -> None: ...

class SnapshotDiffReportEntryProto(_message.Message):
    __slots__ = ("fullpath", "modificationLabel", "targetPath")
    FULLPATH_FIELD_NUMBER: _ClassVar[int]
    MODIFICATIONLABEL_FIELD_NUMBER: _ClassVar[int]
    TARGETPATH_FIELD_NUMBER: _ClassVar[int]
    fullpath: bytes
    modificationLabel: str
    targetPath: bytes
    def __init__(self, fullpath: _Optional[bytes] = ..., modificationLabel: _Optional[str] = ..., targetPath: _Optional[bytes] = ...) -> None: ...

class SnapshotDiffReportListingProto(_message.Message):
    __slots__ = ("modifiedEntries", "createdEntries", "deletedEntries", "isFromEarlier", "cursor")
    MODIFIEDENTRIES_FIELD_NUMBER: _ClassVar[int]
    CREATEDENTRIES_FIELD_NUMBER: _ClassVar[int]
    DELETEDENTRIES_FIELD_NUMBER: _ClassVar[int]
    ISFROMEARLIER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    modifiedEntries: _containers.RepeatedCompositeFieldContainer[SnapshotDiffReportListingEntryProto]
    createdEntries: _containers.RepeatedCompositeFieldContainer[SnapshotDiffReportListingEntryProto]
    deletedEntries: _containers.RepeatedCompositeFieldContainer[SnapshotDiffReportListingEntryProto]
    isFromEarlier: bool
    cursor: SnapshotDiffReportCursorProto
    def __init__(self, modifiedEntries: _Optional[_Iterable[_Union[SnapshotDiffReportListingEntryProto, _Mapping]]] = ..., createdEntries: _Optional[_Iterable[_Union[SnapshotDiffReportListingEntryProto, _Mapping]]] = ..., deletedEntries: _Optional[_Iterable[_Union[SnapshotDiffReportListingEntryProto, _Mapping]]] = ..., isFromEarlier: _Optional[bool] = ..., cursor: _Optional[_Union[SnapshotDiffReportCursorProto, _Mapping]] = ...) -> None: ...

class SnapshotDiffReportListingEntryProto(_message.Message):
    __slots__ = ("fullpath", "dirId", "isReference", "targetPath", "fileId")
    FULLPATH_FIELD_NUMBER: _ClassVar[int]
    DIRID_FIELD_NUMBER: _ClassVar[int]
    ISREFERENCE_FIELD_NUMBER: _ClassVar[int]
    TARGETPATH_FIELD_NUMBER: _ClassVar[int]
    FILEID_FIELD_NUMBER: _ClassVar[int]
    fullpath: bytes
    dirId: int
    isReference: bool
    targetPath: bytes
    fileId: int
    def __init__(self, fullpath: _Optional[bytes] = ..., dirId: _Optional[int] = ..., isReference: _Optional[bool] = ..., targetPath: _Optional[bytes] = ..., fileId: _Optional[int] = ...) -> None: ...

class SnapshotDiffReportCursorProto(_message.Message):
    __slots__ = ("startPath", "index")
    STARTPATH_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    startPath: bytes
    index: int
    def __init__(self, startPath: _Optional[bytes] = ..., index: _Optional[int] = ...) -> None: ...

class ErasureCodingPolicyProto(_message.Message):
    __slots__ = ("name", "schema", "cellSize", "id", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    CELLSIZE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    schema: ECSchemaProto
    cellSize: int
    id: int
    state: ErasureCodingPolicyState
    def __init__(self, name: _Optional[str] = ..., schema: _Optional[_Union[ECSchemaProto, _Mapping]] = ..., cellSize: _Optional[int] = ..., id: _Optional[int] = ..., state: _Optional[_Union[ErasureCodingPolicyState, str]] = ...) -> None: ...

class ECSchemaProto(_message.Message):
    __slots__ = ("codecName", "dataUnits", "parityUnits", "options")
    CODECNAME_FIELD_NUMBER: _ClassVar[int]
    DATAUNITS_FIELD_NUMBER: _ClassVar[int]
    PARITYUNITS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    codecName: str
    dataUnits: int
    parityUnits: int
    options: _containers.RepeatedCompositeFieldContainer[ECSchemaOptionEntryProto]
    def __init__(self, codecName: _Optional[str] = ..., dataUnits: _Optional[int] = ..., parityUnits: _Optional[int] = ..., options: _Optional[_Iterable[_Union[ECSchemaOptionEntryProto, _Mapping]]] = ...) -> None: ...

class ECSchemaOptionEntryProto(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AddErasureCodingPolicyResponseProto(_message.Message):
    __slots__ = ("policy", "succeed", "errorMsg")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SUCCEED_FIELD_NUMBER: _ClassVar[int]
    ERRORMSG_FIELD_NUMBER: _ClassVar[int]
    policy: ErasureCodingPolicyProto
    succeed: bool
    errorMsg: str
    def __init__(self, policy: _Optional[_Union[ErasureCodingPolicyProto, _Mapping]] = ..., succeed: _Optional[bool] = ..., errorMsg: _Optional[str] = ...) -> None: ...

class ECTopologyVerifierResultProto(_message.Message):
    __slots__ = ("resultMessage", "isSupported")
    RESULTMESSAGE_FIELD_NUMBER: _ClassVar[int]
    ISSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    resultMessage: str
    isSupported: bool
    def __init__(self, resultMessage: _Optional[str] = ..., isSupported: _Optional[bool] = ...) -> None: ...

class CipherOptionProto(_message.Message):
    __slots__ = ("suite", "inKey", "inIv", "outKey", "outIv")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    INKEY_FIELD_NUMBER: _ClassVar[int]
    INIV_FIELD_NUMBER: _ClassVar[int]
    OUTKEY_FIELD_NUMBER: _ClassVar[int]
    OUTIV_FIELD_NUMBER: _ClassVar[int]
    suite: CipherSuiteProto
    inKey: bytes
    inIv: bytes
    outKey: bytes
    outIv: bytes
    def __init__(self, suite: _Optional[_Union[CipherSuiteProto, str]] = ..., inKey: _Optional[bytes] = ..., inIv: _Optional[bytes] = ..., outKey: _Optional[bytes] = ..., outIv: _Optional[bytes] = ...) -> None: ...

class FileEncryptionInfoProto(_message.Message):
    __slots__ = ("suite", "cryptoProtocolVersion", "key", "iv", "keyName", "ezKeyVersionName")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    CRYPTOPROTOCOLVERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IV_FIELD_NUMBER: _ClassVar[int]
    KEYNAME_FIELD_NUMBER: _ClassVar[int]
    EZKEYVERSIONNAME_FIELD_NUMBER: _ClassVar[int]
    suite: CipherSuiteProto
    cryptoProtocolVersion: CryptoProtocolVersionProto
    key: bytes
    iv: bytes
    keyName: str
    ezKeyVersionName: str
    def __init__(self, suite: _Optional[_Union[CipherSuiteProto, str]] = ..., cryptoProtocolVersion: _Optional[_Union[CryptoProtocolVersionProto, str]] = ..., key: _Optional[bytes] = ..., iv: _Optional[bytes] = ..., keyName: _Optional[str] = ..., ezKeyVersionName: _Optional[str] = ...) -> None: ...

class PerFileEncryptionInfoProto(_message.Message):
    __slots__ = ("key", "iv", "ezKeyVersionName")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IV_FIELD_NUMBER: _ClassVar[int]
    EZKEYVERSIONNAME_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    iv: bytes
    ezKeyVersionName: str
    def __init__(self, key: _Optional[bytes] = ..., iv: _Optional[bytes] = ..., ezKeyVersionName: _Optional[str] = ...) -> None: ...

class ZoneEncryptionInfoProto(_message.Message):
    __slots__ = ("suite", "cryptoProtocolVersion", "keyName", "reencryptionProto")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    CRYPTOPROTOCOLVERSION_FIELD_NUMBER: _ClassVar[int]
    KEYNAME_FIELD_NUMBER: _ClassVar[int]
    REENCRYPTIONPROTO_FIELD_NUMBER: _ClassVar[int]
    suite: CipherSuiteProto
    cryptoProtocolVersion: CryptoProtocolVersionProto
    keyName: str
    reencryptionProto: ReencryptionInfoProto
    def __init__(self, suite: _Optional[_Union[CipherSuiteProto, str]] = ..., cryptoProtocolVersion: _Optional[_Union[CryptoProtocolVersionProto, str]] = ..., keyName: _Optional[str] = ..., reencryptionProto: _Optional[_Union[ReencryptionInfoProto, _Mapping]] = ...) -> None: ...

class ReencryptionInfoProto(_message.Message):
    __slots__ = ("ezKeyVersionName", "submissionTime", "canceled", "numReencrypted", "numFailures", "completionTime", "lastFile")
    EZKEYVERSIONNAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSIONTIME_FIELD_NUMBER: _ClassVar[int]
    CANCELED_FIELD_NUMBER: _ClassVar[int]
    NUMREENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    NUMFAILURES_FIELD_NUMBER: _ClassVar[int]
    COMPLETIONTIME_FIELD_NUMBER: _ClassVar[int]
    LASTFILE_FIELD_NUMBER: _ClassVar[int]
    ezKeyVersionName: str
    submissionTime: int
    canceled: bool
    numReencrypted: int
    numFailures: int
    completionTime: int
    lastFile: str
    def __init__(self, ezKeyVersionName: _Optional[str] = ..., submissionTime: _Optional[int] = ..., canceled: _Optional[bool] = ..., numReencrypted: _Optional[int] = ..., numFailures: _Optional[int] = ..., completionTime: _Optional[int] = ..., lastFile: _Optional[str] = ...) -> None: ...

class DataEncryptionKeyProto(_message.Message):
    __slots__ = ("keyId", "blockPoolId", "nonce", "encryptionKey", "expiryDate", "encryptionAlgorithm")
    KEYID_FIELD_NUMBER: _ClassVar[int]
    BLOCKPOOLID_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTIONKEY_FIELD_NUMBER: _ClassVar[int]
    EXPIRYDATE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTIONALGORITHM_FIELD_NUMBER: _ClassVar[int]
    keyId: int
    blockPoolId: str
    nonce: bytes
    encryptionKey: bytes
    expiryDate: int
    encryptionAlgorithm: str
    def __init__(self, keyId: _Optional[int] = ..., blockPoolId: _Optional[str] = ..., nonce: _Optional[bytes] = ..., encryptionKey: _Optional[bytes] = ..., expiryDate: _Optional[int] = ..., encryptionAlgorithm: _Optional[str] = ...) -> None: ...

class BlockTokenSecretProto(_message.Message):
    __slots__ = ("expiryDate", "keyId", "userId", "blockPoolId", "blockId", "modes", "storageTypes", "storageIds", "handshakeSecret")
    EXPIRYDATE_FIELD_NUMBER: _ClassVar[int]
    KEYID_FIELD_NUMBER: _ClassVar[int]
    USERID_FIELD_NUMBER: _ClassVar[int]
    BLOCKPOOLID_FIELD_NUMBER: _ClassVar[int]
    BLOCKID_FIELD_NUMBER: _ClassVar[int]
    MODES_FIELD_NUMBER: _ClassVar[int]
    STORAGETYPES_FIELD_NUMBER: _ClassVar[int]
    STORAGEIDS_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKESECRET_FIELD_NUMBER: _ClassVar[int]
    expiryDate: int
    keyId: int
    userId: str
    blockPoolId: str
    blockId: int
    modes: _containers.RepeatedScalarFieldContainer[AccessModeProto]
    storageTypes: _containers.RepeatedScalarFieldContainer[StorageTypeProto]
    storageIds: _containers.RepeatedScalarFieldContainer[str]
    handshakeSecret: bytes
    def __init__(self, expiryDate: _Optional[int] = ..., keyId: _Optional[int] = ..., userId: _Optional[str] = ..., blockPoolId: _Optional[str] = ..., blockId: _Optional[int] = ..., modes: _Optional[_Iterable[_Union[AccessModeProto, str]]] = ..., storageTypes: _Optional[_Iterable[_Union[StorageTypeProto, str]]] = ..., storageIds: _Optional[_Iterable[str]] = ..., handshakeSecret: _Optional[bytes] = ...) -> None: ...

class RollingUpgradeStatusProto(_message.Message):
    __slots__ = ("blockPoolId", "finalized")
    BLOCKPOOLID_FIELD_NUMBER: _ClassVar[int]
    FINALIZED_FIELD_NUMBER: _ClassVar[int]
    blockPoolId: str
    finalized: bool
    def __init__(self, blockPoolId: _Optional[str] = ..., finalized: _Optional[bool] = ...) -> None: ...

class RouterFederatedStateProto(_message.Message):
    __slots__ = ("namespaceStateIds",)
    class NamespaceStateIdsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAMESPACESTATEIDS_FIELD_NUMBER: _ClassVar[int]
    namespaceStateIds: _containers.ScalarMap[str, int]
    def __init__(self, namespaceStateIds: _Optional[_Mapping[str, int]] = ...) -> None: ...
