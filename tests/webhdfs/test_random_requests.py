"""Requests put together at random, from what there is and what there should not be.

Each is answered as some request should be, none leaves a trace of an error of our own in a log.
"""

from __future__ import annotations

import getpass
import random

from tests.webhdfs.raw import connect, exchange_on, status_of

from cairnfs.testing.cluster import Cluster
from cairnfs.webhdfs import changing, looking
from cairnfs.webhdfs.data_parameters import DATA_OPERATIONS

SEED = 20261115
REQUESTS = 3000
OPERATIONS = {
    "GET": [*looking.GET, *DATA_OPERATIONS["GET"], "", "WRONG"],
    "PUT": [*changing.PUT, *DATA_OPERATIONS["PUT"], "null"],
    "POST": [*changing.POST, *DATA_OPERATIONS["POST"]],
    "DELETE": [*changing.DELETE],
    "HEAD": ["GETFILESTATUS"],
}
PATHS = """
/ /a /a/b /a/b/c /b //x /a/../b /.reserved /.reserved/raw/a /.reserved/.inodes/16385 /.snapshot
/a/.snapshot/s /%ff /% /a%20b /a;b /a:b /%2e%2e /a%3Fb
"""
NAMES = """
permission unmaskedpermission offset length buffersize blocksize replication overwrite createparent
createflag destination recursive renameoptions owner group modificationtime accesstime aclspec
xattr.name xattr.value flag encoding snapshotname oldsnapshotname namespacequota storagespacequota
storagetype fsaction startafter sources newlength doas noredirect token ecpolicy storagepolicy
excludedatanodes namenoderpcaddress delegation allusers snapshotdiffindex data
"""
VALUES = """
0 1 -1 644 1777 99999 9999999999999999999999999 true false maybe /a /a/b relative alice null
user:bob:r-x user::rwx,group::r-x,other::r-x default:user:bob:rwx user.a trusted.x CREATE
CREATE,OVERWRITE TEXT hex SSD r-- rwx /a,/b %00 %ff %zz + %2F..%2F 0x01 0szz 127.0.0.1:1 %0d%0aX:y
"""
STATUSES = {200, 201, 307, 400, 403, 404}


def make_request(choices: random.Random) -> bytes:
    method = choices.choice(list(OPERATIONS))
    query = [f"op={choices.choice(OPERATIONS[method])}", f"user.name={getpass.getuser()}"]
    for _ in range(choices.randrange(4)):
        query.append(f"{choices.choice(NAMES.split())}={choices.choice(VALUES.split())}")
    body = choices.choice([b"", b"", b"data" * 1000]) if method in ("PUT", "POST") else b""
    target = f"/webhdfs/v1{choices.choice(PATHS.split())}?{'&'.join(query)}"
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_random_requests_are_answered(cluster: Cluster) -> None:
    choices = random.Random(SEED)
    nodes = [cluster.namenodes[0], cluster.datanodes[0]]
    sockets = [connect(node.http_address) for node in nodes]
    try:
        for _ in range(REQUESTS):
            index = choices.randrange(len(nodes))
            request = make_request(choices)
            answer = exchange_on(sockets[index], request, has_body=not request.startswith(b"HEAD"))
            assert status_of(answer) in STATUSES, (request, answer)
            if b"\r\nConnection: close" in answer:
                sockets[index].close()
                sockets[index] = connect(nodes[index].http_address)
    finally:
        for sock in sockets:
            sock.close()
    for node in nodes:
        assert node.is_running
        assert "Traceback" not in node.log.read_text()
