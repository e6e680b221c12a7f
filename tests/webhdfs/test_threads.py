"""The threads that work for HTTP requests, and the clients that they use."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import Future

from cairnfs.webhdfs.clients import IDLE_MAX, Clients
from cairnfs.webhdfs.lane import Lane, Threads

STUCK = """
import time
from aiohttp import web
from cairnfs.web.server import take_port
from cairnfs.web.thread import HttpThread
from cairnfs.webhdfs import data

data.CLOSE_LIMIT_S = 0.2
served = data.Data("hdfs://127.0.0.1:1")

def make_app():
    app = web.Application()
    async def close(app):
        await served.close()
    app.on_cleanup.append(close)
    served._threads.submit(lambda: time.sleep(60))
    return app

thread = HttpThread(take_port("127.0.0.1", 0, "HTTP port"), make_app)
thread.start()
thread.stop()
"""


class EndingStep(Future[None]):
    """A step that ends just after somebody has found it under way."""

    def done(self) -> bool:
        was_done = super().done()
        if not was_done:
            self.set_result(None)
        return was_done


def test_a_last_step_never_runs_where_it_was_asked_for() -> None:
    threads = Threads("test", 2)
    lane = Lane(threads)
    lane._last = step = EndingStep()
    ran_in: Future[threading.Thread] = Future()
    lane.leave(lambda: ran_in.set_result(threading.current_thread()))
    step.done()
    assert ran_in.result(5) is not threading.current_thread()
    threads.stop(5)


def test_a_last_step_waits_for_the_one_under_way_and_is_done_before_the_end() -> None:
    threads = Threads("test", 2)
    lane = Lane(threads)
    done = []
    go_on = threading.Event()

    def work() -> None:
        go_on.wait(5)
        done.append("step")

    lane._last = threads.submit(work)
    lane.leave(lambda: done.append("last step"))
    threading.Timer(0.2, go_on.set).start()
    threads.stop(5)
    assert done == ["step", "last step"]


def test_a_stuck_step_keeps_no_node_from_ending() -> None:
    """Neither its HTTP server nor its process."""
    subprocess.run([sys.executable, "-c", STUCK], check=True, timeout=60)


def test_a_few_unused_clients_are_kept_and_no_more() -> None:
    clients = Clients("hdfs://127.0.0.1:1")
    users = [f"user{number}" for number in range(IDLE_MAX + 3)]

    def use(names: list[str]) -> list[object]:
        taken = [clients.take(name, None) for name in names]
        for client in taken:
            clients.give_back(client)
        return [client.file_system for client in taken]

    few = use(users[:IDLE_MAX])
    assert use(users[:IDLE_MAX]) == few
    use(users[IDLE_MAX:])
    assert len(clients._clients) == IDLE_MAX
    clients.close()
