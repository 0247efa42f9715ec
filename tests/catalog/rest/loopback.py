"""A real HTTP server on the loopback, for any application of Starlette, in a thread."""

import socket
import threading
import time
from typing import Any

import uvicorn


class LoopbackServer:
    """Serves an application until the `with` block ends."""

    def __init__(self, app: Any, **options: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        quiet = {"lifespan": "off", "log_level": "critical", "access_log": False}
        self._server = uvicorn.Server(uvicorn.Config(app, **{**quiet, **options}))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{'https' if 'ssl_certfile' in options else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> "LoopbackServer":
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
