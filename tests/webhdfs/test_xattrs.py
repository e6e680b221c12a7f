"""Extended attributes over HTTP, beyond what is compared with the recording."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from tests.webhdfs.test_snapshots import ask

import cairnfs
from cairnfs.testing.cluster import Cluster


@pytest.fixture
def path(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = f"/{request.node.name.partition('[')[0]}"
    ask(cluster, "DELETE", name, "op=DELETE&recursive=true")
    ask(cluster, "PUT", name, "op=MKDIRS")
    return name


def set_value(cluster: Cluster, path: str, name: str, value: str) -> None:
    query = f"op=SETXATTR&xattr.name={quote(name)}&xattr.value={quote(value)}&flag=CREATE,REPLACE"
    assert ask(cluster, "PUT", path, query) == (200, None)


def values(cluster: Cluster, path: str, query: str) -> dict[str, str]:
    status, answer = ask(cluster, "GET", path, f"op=GETXATTRS&{query}")
    assert status == 200, answer
    return {each["name"]: each["value"] for each in answer["XAttrs"]}


def test_values_come_in_three_encodings(cluster: Cluster, path: str) -> None:
    data = bytes(range(256))
    set_value(cluster, path, "user.hex", f"0x{data.hex()}")
    set_value(cluster, path, "user.base64", f"0s{base64.b64encode(data).decode()}")
    set_value(cluster, path, "user.text", '"größe & co"')
    set_value(cluster, path, "user.empty", "")
    with cairnfs.connect(cluster.uri) as fs:
        assert fs.get_xattrs(path) == {
            "user.base64": data,
            "user.empty": b"",
            "user.hex": data,
            "user.text": "größe & co".encode(),
        }
    assert values(cluster, path, "xattr.name=user.base64&encoding=hex") == {
        "user.base64": f"0x{data.hex()}"
    }
    assert values(cluster, path, "xattr.name=user.hex&encoding=BASE64") == {
        "user.hex": f"0s{base64.b64encode(data).decode()}"
    }
    two = values(cluster, path, "xattr.name=user.text&xattr.name=user.empty&encoding=text")
    assert two == {"user.text": '"größe & co"', "user.empty": '""'}


def test_names_are_listed_and_removed(cluster: Cluster, path: str) -> None:
    for name in ("user.b", "user.a", "trusted.c"):
        set_value(cluster, path, name, "x")
    status, answer = ask(cluster, "GET", path, "op=LISTXATTRS")
    assert (status, json.loads(answer["XAttrNames"])) == (200, ["user.a", "user.b", "trusted.c"])
    _, answer = ask(cluster, "GET", path, "op=LISTXATTRS", user="alice")
    assert json.loads(answer["XAttrNames"]) == ["user.a", "user.b"]
    assert ask(cluster, "PUT", path, "op=REMOVEXATTR&xattr.name=user.a") == (200, None)
    assert values(cluster, path, "encoding=text") == {"user.b": '"x"', "trusted.c": '"x"'}


@pytest.mark.parametrize(
    ("method", "query", "status", "exception", "words"),
    [
        ("PUT", "SETXATTR&xattr.name=user.a&xattr.value=x&flag=CREATE", 403, "IOException", "a al"),
        ("PUT", "SETXATTR&xattr.name=user.n&flag=REPLACE", 403, "IOException", "n does not exist"),
        ("PUT", "SETXATTR&xattr.name=user.a", 400, "IllegalArgumentException", "flag"),
        (
            "PUT",
            "SETXATTR&xattr.name=user.a&xattr.value=0xz&flag=REPLACE",
            403,
            "IOException",
            "'0xz' is not the value of an attribute",
        ),
        (
            "PUT",
            "SETXATTR&xattr.name=user.&flag=CREATE",
            400,
            "HadoopIllegalArgumentException",
            "XAttr name cannot be empty.",
        ),
        (
            "PUT",
            "SETXATTR&xattr.name=system.a&flag=CREATE",
            403,
            "AccessControlException",
            "User doesn't have permission for xattr: system.a",
        ),
        (
            "PUT",
            f"SETXATTR&xattr.name=user.a&xattr.value=0x{'00' * 3000}&flag=CREATE",
            403,
            "IOException",
            "a already exists",
        ),
        (
            "PUT",
            "REMOVEXATTR&xattr.name=user.n",
            403,
            "IOException",
            "No matching attributes found for remove operation",
        ),
        (
            "GET",
            "GETXATTRS&xattr.name=user.a&xattr.name=user.n&encoding=text",
            403,
            "XAttrNotFoundException",
            "At least one of the attributes provided was not found.",
        ),
        ("GET", "GETXATTRS&encoding=wrong", 400, "IllegalArgumentException", "XAttrCodec.WRONG"),
    ],
)
def test_what_is_wrong_is_said(
    cluster: Cluster, path: str, method: str, query: str, status: int, exception: str, words: str
) -> None:
    set_value(cluster, path, "user.a", "1")
    answered, answer = ask(cluster, method, path, f"op={query}")
    told = answer["RemoteException"]
    assert (answered, told["exception"]) == (status, exception)
    assert words in told["message"]
    assert values(cluster, path, "encoding=text") == {"user.a": '"1"'}


def test_rights_are_those_of_the_user(cluster: Cluster, path: str) -> None:
    set_value(cluster, path, "user.a", "1")
    query = "op=SETXATTR&xattr.name=user.a&xattr.value=2&flag=REPLACE"
    status, answer = ask(cluster, "PUT", path, query, user="alice")
    assert (status, answer["RemoteException"]["exception"]) == (403, "AccessControlException")
    raw = "op=SETXATTR&xattr.name=raw.a&xattr.value=2&flag=CREATE"
    assert ask(cluster, "PUT", f"/.reserved/raw{path}", raw) == (200, None)
    assert ask(cluster, "PUT", path, raw)[0] == 403
    assert values(cluster, path, "encoding=text") == {"user.a": '"1"'}
    assert values(cluster, f"/.reserved/raw{path}", "encoding=text") == {
        "user.a": '"1"',
        "raw.a": '"2"',
    }


def test_inherited_attributes_are_declared_unset_and_explained(cluster: Cluster, path: str) -> None:
    declare = "op=DECLAREXATTR&xattr.name=user.web&xattr.kind="
    assert ask(cluster, "PUT", "/", f"{declare}follow-path") == (200, None)
    assert ask(cluster, "PUT", "/", f"{declare}follow-path") == (200, None)  # again
    ask(cluster, "PUT", f"{path}/below", "op=MKDIRS")
    set_value(cluster, f"{path}/below", "user.web", "low")
    set_value(cluster, path, "user.web", "high")
    _, answer = ask(cluster, "GET", "/", "op=GETDECLAREDXATTRS")
    assert {"name": "user.web", "kind": "follow-path", "isUsed": True} in answer["DeclaredXAttrs"]

    query = "op=EXPLAINXATTRS&xattr.name=user.web"
    _, answer = ask(cluster, "GET", f"{path}/below", query)
    (found,) = answer["XAttrExplanations"]
    assert (found["name"], found["kind"], found["value"]) == ("user.web", "follow-path", '"high"')
    (reason,) = found["reasons"]
    assert (reason["cause"], reason["path"]) == ("SET", path)
    assert [step["path"] for step in found["steps"]] == ["/", path, f"{path}/below"]
    assert [step["value"] for step in found["steps"]] == [None, '"high"', '"low"']
    _, answer = ask(cluster, "GET", path, f"{query}&encoding=hex")
    assert answer["XAttrExplanations"][0]["value"] == f"0x{b'high'.hex()}"

    assert ask(cluster, "PUT", path, "op=UNSETXATTR&xattr.name=user.web") == (200, None)
    assert values(cluster, f"{path}/below", "encoding=text") == {}


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "exception"),
    [
        ("PUT", "/", "DECLAREXATTR&xattr.name=user.x", 400, "IllegalArgumentException"),
        (
            "PUT",
            "/",
            "DECLAREXATTR&xattr.name=user.x&xattr.kind=odd",
            400,
            "HadoopIllegalArgumentException",
        ),
        (
            "PUT",
            "/below",
            "DECLAREXATTR&xattr.name=user.x&xattr.kind=local",
            400,
            "IllegalArgumentException",
        ),
        ("GET", "/below", "GETDECLAREDXATTRS", 400, "IllegalArgumentException"),
        ("GET", "/missing", "EXPLAINXATTRS", 404, "FileNotFoundException"),
        ("GET", "/", "EXPLAINXATTRS&encoding=odd", 400, "IllegalArgumentException"),
        ("PUT", "/", "UNSETXATTR", 400, "IllegalArgumentException"),
    ],
)
def test_what_is_wrong_with_inherited_attributes(
    cluster: Cluster, method: str, path: str, query: str, status: int, exception: str
) -> None:
    found, answer = ask(cluster, method, path, f"op={query}")
    assert (found, answer["RemoteException"]["exception"]) == (status, exception)


def test_who_is_no_superuser_declares_nothing(cluster: Cluster) -> None:
    query = "op=DECLAREXATTR&xattr.name=user.x&xattr.kind=follow-path"
    status, answer = ask(cluster, "PUT", "/", query, user="alice")
    assert (status, answer["RemoteException"]["exception"]) == (403, "AccessControlException")
