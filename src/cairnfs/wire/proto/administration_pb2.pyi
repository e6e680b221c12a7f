from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetGroupsForUserRequestProto(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: str
    def __init__(self, user: _Optional[str] = ...) -> None: ...

class GetGroupsForUserResponseProto(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[str]] = ...) -> None: ...

class RefreshUserToGroupsMappingsRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshUserToGroupsMappingsResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshSuperUserGroupsConfigurationRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshSuperUserGroupsConfigurationResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshServiceAclRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshServiceAclResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshCallQueueRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshCallQueueResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GenericRefreshRequestProto(_message.Message):
    __slots__ = ("identifier", "args")
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    identifier: str
    args: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, identifier: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ...) -> None: ...

class GenericRefreshResponseCollectionProto(_message.Message):
    __slots__ = ("responses",)
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[GenericRefreshResponseProto]
    def __init__(self, responses: _Optional[_Iterable[_Union[GenericRefreshResponseProto, _Mapping]]] = ...) -> None: ...

class GenericRefreshResponseProto(_message.Message):
    __slots__ = ("exitStatus", "userMessage", "senderName")
    EXITSTATUS_FIELD_NUMBER: _ClassVar[int]
    USERMESSAGE_FIELD_NUMBER: _ClassVar[int]
    SENDERNAME_FIELD_NUMBER: _ClassVar[int]
    exitStatus: int
    userMessage: str
    senderName: str
    def __init__(self, exitStatus: _Optional[int] = ..., userMessage: _Optional[str] = ..., senderName: _Optional[str] = ...) -> None: ...

class ListSpanReceiversRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSpanReceiversResponseProto(_message.Message):
    __slots__ = ("descriptions",)
    DESCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    descriptions: _containers.RepeatedCompositeFieldContainer[SpanReceiverListInfo]
    def __init__(self, descriptions: _Optional[_Iterable[_Union[SpanReceiverListInfo, _Mapping]]] = ...) -> None: ...

class SpanReceiverListInfo(_message.Message):
    __slots__ = ("id", "className")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLASSNAME_FIELD_NUMBER: _ClassVar[int]
    id: int
    className: str
    def __init__(self, id: _Optional[int] = ..., className: _Optional[str] = ...) -> None: ...

class AddSpanReceiverRequestProto(_message.Message):
    __slots__ = ("className", "config")
    CLASSNAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    className: str
    config: _containers.RepeatedCompositeFieldContainer[ConfigPair]
    def __init__(self, className: _Optional[str] = ..., config: _Optional[_Iterable[_Union[ConfigPair, _Mapping]]] = ...) -> None: ...

class ConfigPair(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AddSpanReceiverResponseProto(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class RemoveSpanReceiverRequestProto(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class RemoveSpanReceiverResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
