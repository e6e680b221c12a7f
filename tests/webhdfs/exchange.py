"""Requests to a WebHDFS, what came back, and a transcript of both.

A transcript repeats the request and tells of each answer its status, its type, where it leads, and
what it says:

    $ PUT /f/hello?op=CREATE < hello
    307 application/octet-stream -> http://DATANODE/webhdfs/v1/f/hello?op=CREATE&...
    201 - -> hdfs://NAMENODE/f/hello

What differs from run to run by its nature (times, ports, ids) is replaced by words, so that the
transcripts of two servers can be compared.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

PREFIX = "/webhdfs/v1"
SUPERUSER = "hdfs"
NOBODY = "-"  # a request without user.name
BIG = bytes(n * 7 % 251 for n in range((1 << 20) + 300_000))
SHOWN_BYTES_MAX = 200
TIMEOUT_S = 60.0


class Request(NamedTuple):
    """A line of the script."""

    text: str
    user: str
    method: str
    target: str
    body: bytes


class Entry(NamedTuple):
    """A request and what became of it."""

    request: str
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join((f"$ {self.request}", *self.lines))


class Answer(NamedTuple):
    """One response."""

    status: int
    type: str
    location: str
    body: bytes


def read_script(path: Path) -> list[Request]:
    return [
        _parse(line) for line in path.read_text().splitlines() if line and not line.startswith("#")
    ]


def _parse(line: str) -> Request:
    rest, user = line, SUPERUSER
    if rest.startswith("@"):
        user, rest = rest[1:].split(maxsplit=1)
    rest, _, body = rest.partition(" < ")
    is_whole = rest.startswith("!")  # the target is as it stands
    method, target = rest.removeprefix("!").split()
    data = BIG if body == "{big}" else body.encode()
    return Request(
        line, NOBODY if is_whole else user, method, target if is_whole else PREFIX + target, data
    )


def send(
    address: str, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """One request on a connection of its own; redirects are not followed."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request(method, target, body or None, headers or {})
        response = connection.getresponse()
        return Answer(
            response.status,
            response.getheader("Content-Type") or "-",
            response.getheader("Location") or "",
            response.read(),
        )
    finally:
        connection.close()


def follow(address: str, method: str, target: str, body: bytes = b"") -> list[Answer]:
    """The answer, and that of where it redirects to, which is given the body."""
    answers = [send(address, method, target)]
    while answers[-1].status == 307:
        url = urlsplit(answers[-1].location)
        answers.append(send(url.netloc, method, f"{url.path}?{url.query}", body))
    return answers


def run_script(requests: Iterable[Request], address: str, superuser: str) -> list[Entry]:
    """What becomes of the requests at the NameNode whose HTTP address this is."""
    normalise = Normaliser(superuser)
    entries = []
    for request in requests:
        target = request.target
        if request.user != NOBODY:
            user = superuser if request.user == SUPERUSER else request.user
            target += f"{'&' if '?' in target else '?'}user.name={quote(user)}"
        answers = follow(address, request.method, target, request.body)
        entries.append(Entry(request.text, [line for each in answers for line in normalise(each)]))
    return entries


def write_transcript(path: Path, entries: Iterable[Entry]) -> None:
    path.write_text("\n\n".join(map(str, entries)) + "\n")


def read_transcript(path: Path) -> list[Entry]:
    entries = []
    for part in path.read_text().strip("\n").split("\n\n$ "):
        request, *lines = part.removeprefix("$ ").split("\n")
        entries.append(Entry(request, lines))
    return entries


def find_differences(golden: list[Entry], entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    """The requests that were answered in another way.

    The message of an error may say more than HDFS's, such as which path it is about.
    """
    assert [entry.request for entry in golden] == [entry.request for entry in entries], (
        "the golden transcript is of another script: record it again"
    )
    return [(a, b) for a, b in zip(golden, entries, strict=True) if not _is_as(a, b)]


def _is_as(golden: Entry, ours: Entry) -> bool:
    return len(golden.lines) == len(ours.lines) and all(
        our == theirs or (theirs.startswith(_ERROR) and our.startswith(theirs.removesuffix(_END)))
        for theirs, our in zip(golden.lines, ours.lines, strict=True)
    )


_ERROR, _END = '{"RemoteException": ', '"}}'  # the message is what comes last


_TIMES = {"modificationTime", "accessTime"}
_WORDS = {
    **dict.fromkeys(("fileId", "blockId", "generationStamp"), "ID"),
    **dict.fromkeys(("xferPort", "infoPort", "ipcPort"), "PORT"),
    **dict.fromkeys(("capacity", "used", "remaining", "dfsUsed", "blockPoolUsed"), "BYTES"),
    **dict.fromkeys(("hostName", "ipAddr"), "HOST"),
    **dict.fromkeys(("lastUpdate", "lastUpdateMonotonic"), "TIME"),
    **dict.fromkeys(("lastBlockReportTime", "lastBlockReportMonotonic"), "TIME"),
    "blockPoolId": "POOL",
    "storageID": "UUID",
    "xceiverCount": "COUNT",
}


class Normaliser:
    """Puts words for what is never twice the same."""

    def __init__(self, superuser: str) -> None:
        user = re.escape(superuser)
        self._replacements = [
            (re.compile(r"http://[\w.]+:\d+(?=/webhdfs)"), "http://DATANODE"),
            (re.compile(r"hdfs://[\w.]+:\d+"), "hdfs://NAMENODE"),
            (re.compile(r"namenoderpcaddress=[\w.]+:\d+"), "namenoderpcaddress=NAMENODE"),
            (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
            (re.compile(r"\blocalhost\b"), "HOST"),
            (
                re.compile(rf"(user\.name=|/user/|user=|impersonate |User: ){user}\b"),
                rf"\1{SUPERUSER}",
            ),
            (re.compile(rf"(?<=inode=\"){user}\b"), SUPERUSER),
            (re.compile(rf":{user}(?=:supergroup:)"), f":{SUPERUSER}"),
            (re.compile(r"\(inode \d+\)"), "(inode N)"),
            (re.compile(r"DFSClient_[A-Za-z0-9_-]+"), "CLIENT"),
            (re.compile(r"blk_\d+_\d+"), "blk_N"),
            (re.compile(r"(?s)\n\tat .*"), ""),  # where in the server's source
        ]
        self._superuser = superuser

    def __call__(self, answer: Answer) -> list[str]:
        location = f" -> {self._text(answer.location)}" if answer.location else ""
        kind = answer.type.lower().replace(" ", "").removesuffix(";charset=utf-8")
        if not answer.body and kind == "application/octet-stream":
            kind = "-"  # nothing has no type
        lines = [f"{answer.status} {kind}{location}"]
        if answer.body:
            lines += self._body(answer)
        return lines

    def _body(self, answer: Answer) -> list[str]:
        if "html" in answer.type:
            return ["a page"]
        if "json" in answer.type:
            try:
                value = self._value("", json.loads(answer.body))
            except ValueError:
                return [f"not JSON: {answer.body[:SHOWN_BYTES_MAX]!r}"]
            return [json.dumps(value, ensure_ascii=False, sort_keys=True)]
        if len(answer.body) > SHOWN_BYTES_MAX:
            return [f"{len(answer.body)} bytes, MD5 {hashlib.md5(answer.body).hexdigest()}"]
        return [repr(answer.body)]

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(name, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._value(key, each) for each in value]
        if key in _TIMES and value >= 10**9:
            return "TIME"
        if key in _WORDS:
            return _WORDS[key]
        if key == "owner" and value == self._superuser:
            return SUPERUSER
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for pattern, word in self._replacements:
            text = pattern.sub(word, text)
        return text
