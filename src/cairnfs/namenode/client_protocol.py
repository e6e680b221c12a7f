"""ClientNamenodeProtocol, all of its calls; each family has a module of its own."""

from __future__ import annotations

from cairnfs.namenode import (
    client_absent,
    client_cluster,
    client_files,
    client_namespace,
    client_open_files,
    client_policies,
    client_reading,
    client_snapshots,
    client_upgrades,
    client_xattrs,
)
from cairnfs.namenode.service import Service

CLIENT_SERVICE = Service.join(
    client_namespace.CALLS,
    client_reading.CALLS,
    client_files.CALLS,
    client_open_files.CALLS,
    client_snapshots.CALLS,
    client_xattrs.CALLS,
    client_cluster.CALLS,
    client_policies.CALLS,
    client_upgrades.CALLS,
    client_absent.CALLS,
)
