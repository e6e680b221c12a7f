"""What a node tells over HTTP of itself: /metrics, /jmx and /conf.

    add_routes(app, NameNodeSource(namenode, server, port, config))

The page names are those of HDFS (/prom is its other name for /metrics).  Nothing here changes
anything, and nothing is secret: passwords are left out.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from cairnfs.observe import conf, jmx, prometheus
from cairnfs.observe.conf import Property
from cairnfs.observe.jmx import Bean
from cairnfs.observe.prometheus import Family


class Source(Protocol):
    """A node that tells of itself."""

    async def families(self) -> list[Family]: ...

    async def beans(self) -> list[Bean]: ...

    def properties(self) -> list[Property]: ...


def add_routes(app: web.Application, source: Source) -> None:
    """Serve the pages of a node."""
    pages = _Pages(source)
    app.router.add_get("/metrics", pages.metrics)
    app.router.add_get("/prom", pages.metrics)
    app.router.add_get("/jmx", pages.jmx)
    app.router.add_get("/conf", pages.conf)


class _Pages:
    def __init__(self, source: Source) -> None:
        self._source = source

    async def metrics(self, request: web.Request) -> web.Response:
        text = prometheus.render(await self._source.families())
        return web.Response(body=text.encode(), headers={"Content-Type": prometheus.CONTENT_TYPE})

    async def jmx(self, request: web.Request) -> web.Response:
        try:
            beans = jmx.choose_beans(
                await self._source.beans(), request.query.get("qry"), request.query.get("get")
            )
        except jmx.BadQuery as error:
            return web.json_response({"result": "ERROR", "message": str(error)}, status=400)
        except jmx.NotFound as error:
            return web.json_response({"result": "ERROR", "message": str(error)}, status=404)
        headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET"}
        return web.Response(
            text=jmx.render(beans), content_type="application/json", headers=headers
        )

    async def conf(self, request: web.Request) -> web.Response:
        properties = self._source.properties()
        is_json = "json" in request.headers.get("Accept", "")
        name = request.query.get("name")
        found = None
        if name:
            found = conf.find(properties, name)
            if found is None:
                return web.Response(text=f"Property {name} not found", status=404)
            properties = [found]
        if is_json:
            text = conf.render_json(properties) if found is None else conf.render_one_json(found)
            return web.Response(text=text, content_type="application/json")
        return web.Response(text=conf.render_xml(properties), content_type="text/xml")
