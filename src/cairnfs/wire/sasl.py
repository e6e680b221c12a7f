"""Authentication, as far as a server goes that believes the name it is told.

Clients with security switched on, or with a token of any other service, begin with SASL
(auth protocol -33). Hadoop's server without security tells them to go on without; a client
that must not (`ipc.client.fallback-to-simple-auth-allowed`) then leaves by itself.
"""

from __future__ import annotations

from cairnfs.wire.proto.rpc_pb2 import RpcSaslProto
from cairnfs.wire.rpc_errors import SaslException

SASL_CALL_ID = -33  # also the auth protocol in the connection header


def answer_simple_only(message: RpcSaslProto) -> RpcSaslProto:
    """The answer that ends the negotiation: SUCCESS before it began means SIMPLE.

    Raises SaslException for a step that no negotiation can have come to.
    """
    if message.state == RpcSaslProto.INITIATE and len(message.auths) != 1:
        raise SaslException("Client mechanism is malformed")
    if message.state not in (RpcSaslProto.NEGOTIATE, RpcSaslProto.INITIATE):
        state = RpcSaslProto.SaslState.Name(message.state)
        raise SaslException(f"Client sent unsupported state {state}")
    answer = RpcSaslProto()
    answer.state = RpcSaslProto.SUCCESS
    return answer
