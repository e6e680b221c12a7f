from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetReconfigurationStatusRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetReconfigurationStatusResponseProto(_message.Message):
    __slots__ = ("startTime", "endTime", "changes")
    STARTTIME_FIELD_NUMBER: _ClassVar[int]
    ENDTIME_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    startTime: int
    endTime: int
    changes: _containers.RepeatedCompositeFieldContainer[GetReconfigurationStatusConfigChangeProto]
    def __init__(self, startTime: _Optional[int] = ..., endTime: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[GetReconfigurationStatusConfigChangeProto, _Mapping]]] = ...) -> None: ...

class GetReconfigurationStatusConfigChangeProto(_message.Message):
    __slots__ = ("name", "oldValue", "newValue", "errorMessage")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OLDVALUE_FIELD_NUMBER: _ClassVar[int]
    NEWVALUE_FIELD_NUMBER: _ClassVar[int]
    ERRORMESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    oldValue: str
    newValue: str
    errorMessage: str
    def __init__(self, name: _Optional[str] = ..., oldValue: _Optional[str] = ..., newValue: _Optional[str] = ..., errorMessage: _Optional[str] = ...) -> None: ...

class StartReconfigurationRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StartReconfigurationResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListReconfigurablePropertiesRequestProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListReconfigurablePropertiesResponseProto(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[_Iterable[str]] = ...) -> None: ...
