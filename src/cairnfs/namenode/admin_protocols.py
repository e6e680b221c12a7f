"""The protocols of administrators: high availability, group mappings, refreshes."""

from __future__ import annotations

from cairnfs.errors import AccessControlException, UnsupportedOperationException
from cairnfs.namenode.namenode_protocol import NAMENODE_SERVICE
from cairnfs.namenode.responses import NOTHING
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.wire.proto import administration_pb2, ha_service_pb2
from cairnfs.wire.protocols import (
    GENERIC_REFRESH_PROTOCOL,
    GET_USER_MAPPINGS_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    REFRESH_AUTHORIZATION_POLICY_PROTOCOL,
    REFRESH_CALL_QUEUE_PROTOCOL,
    REFRESH_USER_MAPPINGS_PROTOCOL,
    as_text,
)

HA_SERVICE = Service(HA_SERVICE_PROTOCOL)
USER_MAPPINGS_SERVICE = Service(GET_USER_MAPPINGS_PROTOCOL)
REFRESH_USER_MAPPINGS_SERVICE = Service(REFRESH_USER_MAPPINGS_PROTOCOL)
REFRESH_POLICY_SERVICE = Service(REFRESH_AUTHORIZATION_POLICY_PROTOCOL)
REFRESH_QUEUE_SERVICE = Service(REFRESH_CALL_QUEUE_PROTOCOL)
GENERIC_REFRESH_SERVICE = Service(GENERIC_REFRESH_PROTOCOL)

ADMIN_SERVICES = (
    HA_SERVICE,
    NAMENODE_SERVICE,
    USER_MAPPINGS_SERVICE,
    REFRESH_USER_MAPPINGS_SERVICE,
    REFRESH_POLICY_SERVICE,
    REFRESH_QUEUE_SERVICE,
    GENERIC_REFRESH_SERVICE,
)

_ALWAYS_ACTIVE = "every NameNode is active: there is nothing to change"


def check_superuser(call: IncomingCall) -> None:
    """What only an administrator may ask."""
    if not call.caller.is_superuser:
        raise AccessControlException(
            f"Access denied for user {call.caller.user}. Superuser privilege is required"
        )


# High availability: NameNodes share a store, and all of them are active


@HA_SERVICE.handler
def monitor_health(call: IncomingCall, request: ha_service_pb2.MonitorHealthRequestProto) -> bytes:
    return NOTHING


@HA_SERVICE.handler
def get_service_status(
    call: IncomingCall, request: ha_service_pb2.GetServiceStatusRequestProto
) -> ha_service_pb2.GetServiceStatusResponseProto:
    return ha_service_pb2.GetServiceStatusResponseProto(
        state=ha_service_pb2.ACTIVE, readyToBecomeActive=True
    )


@HA_SERVICE.handler
def transition_to_active(
    call: IncomingCall, request: ha_service_pb2.TransitionToActiveRequestProto
) -> bytes:
    check_superuser(call)
    return NOTHING


@HA_SERVICE.handler
def transition_to_standby(
    call: IncomingCall, request: ha_service_pb2.TransitionToStandbyRequestProto
) -> None:
    raise UnsupportedOperationException(_ALWAYS_ACTIVE)


@HA_SERVICE.handler
def transition_to_observer(
    call: IncomingCall, request: ha_service_pb2.TransitionToObserverRequestProto
) -> None:
    raise UnsupportedOperationException(_ALWAYS_ACTIVE)


# Groups


@USER_MAPPINGS_SERVICE.handler
def get_groups_for_user(
    call: IncomingCall, request: administration_pb2.GetGroupsForUserRequestProto
) -> administration_pb2.GetGroupsForUserResponseProto:
    return administration_pb2.GetGroupsForUserResponseProto(
        groups=call.groups.of(as_text(request.user))
    )


@REFRESH_USER_MAPPINGS_SERVICE.handler
def refresh_user_to_groups_mappings(
    call: IncomingCall, request: administration_pb2.RefreshUserToGroupsMappingsRequestProto
) -> bytes:
    check_superuser(call)
    call.groups.forget()
    return NOTHING


# Refreshes of what is not read from a file, and so never out of date


@REFRESH_USER_MAPPINGS_SERVICE.handler
def refresh_super_user_groups_configuration(
    call: IncomingCall, request: administration_pb2.RefreshSuperUserGroupsConfigurationRequestProto
) -> bytes:
    check_superuser(call)
    return NOTHING


@REFRESH_POLICY_SERVICE.handler
def refresh_service_acl(
    call: IncomingCall, request: administration_pb2.RefreshServiceAclRequestProto
) -> bytes:
    check_superuser(call)
    return NOTHING


@REFRESH_QUEUE_SERVICE.handler
def refresh_call_queue(
    call: IncomingCall, request: administration_pb2.RefreshCallQueueRequestProto
) -> bytes:
    check_superuser(call)
    return NOTHING


@GENERIC_REFRESH_SERVICE.handler
def refresh(
    call: IncomingCall, request: administration_pb2.GenericRefreshRequestProto
) -> administration_pb2.GenericRefreshResponseCollectionProto:
    response = administration_pb2.GenericRefreshResponseCollectionProto()
    answer = response.responses.add()
    answer.exitStatus = -1
    answer.userMessage = f"There is nothing to refresh by the name {as_text(request.identifier)!r}"
    return response
