"""Entry point of a SQL Gateway process: ``python -m firesteel.cluster.sql_gateway_main launch.json``."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from firesteel.client.connection import ClusterAddress
from firesteel.client.local_clusters import cluster_directory
from firesteel.client.remote_executor import RemoteExecutor
from firesteel.cluster.sql_gateway import LazyGateway, gateway_server
from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import PipelineExecutor

__all__ = ["main"]


def main(path: str) -> int:
    """Runs the gateway that the file describes until it is told to stop; returns its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    told = json.loads(Path(path).read_bytes())
    configuration = Configuration.from_dict(told["configuration"])
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        with ExitStack() as stack:
            executor: PipelineExecutor | None = None
            if told["urls"]:
                address = ClusterAddress(tuple(told["urls"]), configuration, told["token_file"])
                remote = RemoteExecutor(stack.enter_context(address.client()))
                stack.callback(remote.close)
                executor = remote
            gateway = LazyGateway(configuration, executor)
            stack.callback(gateway.close)
            directory = cluster_directory(configuration)
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            server = gateway_server(gateway, configuration, directory)
            server.start()
            stack.callback(server.close)
            presence = Path(told["presence"])
            unfinished = presence.with_suffix(".tmp")
            unfinished.write_text(json.dumps({"pid": os.getpid(), "url": server.url}))
            unfinished.replace(presence)
            stack.callback(presence.unlink, missing_ok=True)
            stopped.wait()
    except FiresteelError as error:
        sys.stderr.write(f"firesteel: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
