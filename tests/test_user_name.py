"""Who runs this process, also where the system has no name for them."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

import cairnfs
from cairnfs.client.addresses import default_user
from cairnfs.config import FormatSettings
from cairnfs.user_name import user_name


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_who_has_no_name_is_called_by_number(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> str:
        raise error("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", refuse)
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    assert user_name() == default_user() == FormatSettings().superuser == str(os.getuid())


def test_nothing_else_asks_the_system() -> None:
    package = Path(cairnfs.__file__).parent
    askers = [path.name for path in package.rglob("*.py") if "getpass" in path.read_text()]
    assert askers == ["user_name.py"]
