"""What HDFS tells at /conf: every property, its value, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from xml.sax.saxutils import escape

from cairnfs.config_file import Config
from cairnfs.options import Value, without_password


class Property(NamedTuple):
    """One line of a Hadoop configuration."""

    name: str
    value: str
    source: str


def properties_of(config: Config, more: Mapping[str, str] | None = None) -> list[Property]:
    """Our settings as `cairn.section.name`, and those that HDFS has too by its names as well.

    `more` is what no setting says.
    """
    properties = [Property(name, value, "default") for name, value in (more or {}).items()]
    for setting in config:
        option, value = setting.option, _format(setting.value)
        properties.append(Property(f"cairn.{option.key}", value, setting.origin))
        if option.hadoop:
            properties.append(Property(option.hadoop, value, setting.origin))
    return sorted(properties)


def find(properties: Iterable[Property], name: str) -> Property | None:
    return next((each for each in properties if each.name == name), None)


def render_json(properties: Iterable[Property]) -> str:
    return json.dumps({"properties": list(map(_as_json, properties))})


def render_one_json(property: Property) -> str:
    return json.dumps({"property": _as_json(property)})


def render_xml(properties: Iterable[Property]) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8" standalone="no"?>', "<configuration>"]
    for each in properties:
        lines.append(
            f"<property><name>{escape(each.name)}</name><value>{escape(each.value)}</value>"
            f"<final>false</final><source>{escape(each.source)}</source></property>"
        )
    return "\n".join([*lines, "</configuration>", ""])


def _as_json(property: Property) -> dict[str, object]:
    return {
        "key": property.name,
        "value": property.value,
        "isFinal": False,
        "resource": property.source,
    }


def _format(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(without_password, value))
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return without_password(str(value))
