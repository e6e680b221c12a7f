from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TokenProto(_message.Message):
    __slots__ = ("identifier", "password", "kind", "service")
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    identifier: bytes
    password: bytes
    kind: str
    service: str
    def __init__(self, identifier: _Optional[bytes] = ..., password: _Optional[bytes] = ..., kind: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class CredentialsKVProto(_message.Message):
    __slots__ = ("alias", "token", "secret")
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    alias: str
    token: TokenProto
    secret: bytes
    def __init__(self, alias: _Optional[str] = ..., token: _Optional[_Union[TokenProto, _Mapping]] = ..., secret: _Optional[bytes] = ...) -> None: ...

class CredentialsProto(_message.Message):
    __slots__ = ("tokens", "secrets")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[CredentialsKVProto]
    secrets: _containers.RepeatedCompositeFieldContainer[CredentialsKVProto]
    def __init__(self, tokens: _Optional[_Iterable[_Union[CredentialsKVProto, _Mapping]]] = ..., secrets: _Optional[_Iterable[_Union[CredentialsKVProto, _Mapping]]] = ...) -> None: ...

class GetDelegationTokenRequestProto(_message.Message):
    __slots__ = ("renewer",)
    RENEWER_FIELD_NUMBER: _ClassVar[int]
    renewer: str
    def __init__(self, renewer: _Optional[str] = ...) -> None: ...

class GetDelegationTokenResponseProto(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: TokenProto
    def __init__(self, token: _Optional[_Union[TokenProto, _Mapping]] = ...) -> None: ...

class RenewDelegationTokenRequestProto(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: TokenProto
    def __init__(self, token: _Optional[_Union[TokenProto, _Mapping]] = ...) -> None: ...

class RenewDelegationTokenResponseProto(_message.Message):
    __slots__ = ("newExpiryTime",)
    NEWEXPIRYTIME_FIELD_NUMBER: _ClassVar[int]
    newExpiryTime: int
    def __init__(self, newExpiryTime: _Optional[int] = ...) -> None: ...

class CancelDelegationTokenRequestProto(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: TokenProto
    def __init__(self, token: _Optional[_Union[TokenProto, _Mapping]] = ...) -> None: ...

class CancelDelegationTokenResponseProto(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
