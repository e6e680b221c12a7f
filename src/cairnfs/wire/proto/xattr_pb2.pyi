from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class XAttrSetFlagProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    XATTR_CREATE: _ClassVar[XAttrSetFlagProto]
    XATTR_REPLACE: _ClassVar[XAttrSetFlagProto]
XATTR_CREATE: XAttrSetFlagProto
XATTR_REPLACE: XAttrSetFlagProto

class XAttrProto(_message.Message):
    __slots__ = ("namespace", "name", "value")
    class XAttrNamespaceProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        USER: _ClassVar[XAttrProto.XAttrNamespaceProto]
        TRUSTED: _ClassVar[XAttrProto.XAttrNamespaceProto]
        SECURITY: _ClassVar[XAttrProto.XAttrNamespaceProto]
        SYSTEM: _ClassVar[XAttrProto.XAttrNamespaceProto]
        RAW: _ClassVar[XAttrProto.XAttrNamespaceProto]
    USER: XAttrProto.XAttrNamespaceProto
    TRUSTED: XAttrProto.XAttrNamespaceProto
    SECURITY: XAttrProto.XAttrNamespaceProto
    SYSTEM: XAttrProto.XAttrNamespaceProto
    RAW: XAttrProto.XAttrNamespaceProto
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    namespace: XAttrProto.XAttrNamespaceProto
    name: str
    value: bytes
    def __init__(self, namespace: _Optional[_Union[XAttrProto.XAttrNamespaceProto, str]] = ..., name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class SetXAttrRequestProto(_message.Message):
    __slots__ = ("src", "xAttr", "flag")
    SRC_FIELD_NUMBER: _ClassVar[int]
    XATTR_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    src: str
    xAttr: XAttrProto
    flag: int
    def __init__(self, src: _Optional[str] = ..., xAttr: _Optional[_Union[XAttrProto, _Mapping]] = ..., flag: _Optional[int] = ...) -> None: ...

class SetXAttrResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetXAttrsRequestProto(_message.Message):
    __slots__ = ("src", "xAttrs")
    SRC_FIELD_NUMBER: _ClassVar[int]
    XATTRS_FIELD_NUMBER: _ClassVar[int]
    src: str
    xAttrs: _containers.RepeatedCompositeFieldContainer[XAttrProto]
    def __init__(self, src: _Optional[str] = ..., xAttrs: _Optional[_Iterable[_Union[XAttrProto, _Mapping]]] = ...) -> None: ...

class GetXAttrsResponseProto(_message.Message):
    __slots__ = ("xAttrs",)
    XATTRS_FIELD_NUMBER: _ClassVar[int]
    xAttrs: _containers.RepeatedCompositeFieldContainer[XAttrProto]
    def __init__(self, xAttrs: _Optional[_Iterable[_Union[XAttrProto, _Mapping]]] = ...) -> None: ...

class ListXAttrsRequestProto(_message.Message):
    __slots__ = ("src",)
    SRC_FIELD_NUMBER: _ClassVar[int]
    src: str
    def __init__(self, src: _Optional[str] = ...) -> None: ...

class ListXAttrsResponseProto(_message.Message):
    __slots__ = ("xAttrs",)
    XATTRS_FIELD_NUMBER: _ClassVar[int]
    xAttrs: _containers.RepeatedCompositeFieldContainer[XAttrProto]
    def __init__(self, xAttrs: _Optional[_Iterable[_Union[XAttrProto, _Mapping]]] = ...) -> None: ...

class RemoveXAttrRequestProto(_message.Message):
    __slots__ = ("src", "xAttr")
    SRC_FIELD_NUMBER: _ClassVar[int]
    XATTR_FIELD_NUMBER: _ClassVar[int]
    src: str
    xAttr: XAttrProto
    def __init__(self, src: _Optional[str] = ..., xAttr: _Optional[_Union[XAttrProto, _Mapping]] = ...) -> None: ...

class RemoveXAttrResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
