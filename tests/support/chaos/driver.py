"""The driver process of a chaos run: runs the job, and tells in a file what becomes of it.

Each line of ``control/story.jsonl`` is an event: the start, each failure in the job's history, the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError
from firesteel.datastream import StreamExecutionEnvironment
from tests.support.chaos.job import Directories, build

POLL_S = 0.1


class Story:
    def __init__(self, path: Path, run: int):
        self._path = path
        self._run = run

    def tell(self, what: str, **details: Any) -> None:
        event = {"at": time.time(), "run": self._run, "what": what, **details}
        # in one go: somebody reads it meanwhile, and a driver that is killed must not leave half a line
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, json.dumps(event).encode() + b"\n")
        os.close(descriptor)


def main() -> int:
    request = json.loads(sys.argv[1])
    directories = Directories(Path(request["root"]))
    story = Story(directories.control / "story.jsonl", request["run"])
    warnings.showwarning = lambda message, *_rest: story.tell("warning", text=str(message))
    warnings.simplefilter("always")
    config = Configuration()
    for key, value in request["configuration"].items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    build(env, directories, request["run"])
    client = env.execute_async("chaos")
    story.tell("started", pid=os.getpid(), job=str(client.get_job_id()))
    result = client.get_job_execution_result()
    seen = 0
    while True:
        done = result.done()
        entries = client._handle.snapshot.exception_history  # type: ignore[attr-defined]
        for entry in entries:
            if entry.at * 100 + entry.attempt > seen:
                seen = entry.at * 100 + entry.attempt
                failure = entry.failure
                story.tell(
                    "failure",
                    attempt=entry.attempt,
                    failed_at=entry.at / 1000,
                    error=failure.error_type,
                    message=failure.message[:600],
                    traceback=(failure.traceback or "")[-1500:],
                )
        if done:
            break
        time.sleep(POLL_S)
    try:
        result.result(0)
    except FiresteelError as error:
        story.tell("ended", status="FAILED", error=str(error)[:3000])
        return 1
    story.tell("ended", status="FINISHED", checkpoints=_counts(client))
    return 0


def _counts(client: Any) -> Any:
    try:
        return client._handle.checkpoint_statistics()["counts"]
    except Exception:
        return traceback.format_exc()


if __name__ == "__main__":
    sys.exit(main())
