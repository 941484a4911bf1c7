"""What env.explain() says of a program, and that it leaves the program alone."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import collect, test_environment


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    return test_environment(2, configuration)


def program(env: StreamExecutionEnvironment) -> Any:
    return env.from_sequence(1, 10).map(lambda n: (n % 3, n)).key_by(lambda pair: pair[0]).sum(1)


def explained(format: str = "text", **settings: str) -> str:
    env = environment(**settings)
    program(env).print()
    return env.explain(format)


def test_pipelined() -> None:
    assert (
        explained()
        == textwrap.dedent(
            """\
        Job 'Flink Streaming Job': 2 vertices, 4 subtasks, 2 slots
        Execution: pipelined, because it is the default
        1: Source: Sequence Source -> Map (parallelism 2)
        +- HASH, pipelined -> 2: Reduce -> Sink: Print to Std. Out (parallelism 2)

        slots:       2, held all the time; without them the job does not start
        state:       hashmap, in the slots
        checkpoints: none: execution.checkpointing.interval is not set

        Exchanges:
          1 -> 2: HASH, pipelined: both tasks run concurrently, and records are sent as they are produced
        """
        ).rstrip()
    )


def test_pipelined_with_checkpoints_and_a_savepoint() -> None:
    text = explained(
        **{
            "execution.checkpointing.interval": "10 s",
            "execution.checkpointing.dir": "s3://bucket/checkpoints",
            "state.backend.type": "rocksdb",
            "execution.state-recovery.path": "s3://bucket/savepoint-1",
        }
    )
    assert "state:       rocksdb, in the slots\n" in text
    assert "checkpoints: every 10 s, in s3://bucket/checkpoints\n" in text
    assert "starts from: s3://bucket/savepoint-1\n" in text


@pytest.mark.parametrize(
    ("settings", "trigger", "granted"),
    [
        ({}, "continuous: an epoch starts when the previous one has ended", "as many as make an epoch last 1 s"),
        (
            {"execution.epoch.trigger": "interval", "execution.epoch.interval": "30 s"},
            "interval: an epoch every 30 s",
            "as many as make an epoch last 30 s",
        ),
        (
            {"execution.epoch.trigger": "available-now", "execution.epoch.target-duration": "5 s"},
            "available-now: epochs until all available input is read, then the job ends",
            "as many as make an epoch last 5 s",
        ),
        ({"execution.epoch.max-records": "5000"}, "continuous", "at most 5,000 records for each subtask of a source"),
    ],
)
def test_epochs(settings: dict[str, str], trigger: str, granted: str) -> None:
    text = explained(**{"execution.exchange": "spark", **settings})
    lines = {name: line for line in text.splitlines() for name, colon, _ in [line.partition(":")] if colon}
    assert trigger in lines["trigger"]
    assert granted in lines["credits"]
    assert "held only while an epoch runs" in lines["slots"]
    assert "temporary directory" in lines["checkpoints"]
    assert "1 -> 2: HASH, blocking (Spark shuffle): an epoch is one Spark job" in text


@pytest.mark.parametrize(
    ("settings", "resumes"),
    [
        ({}, False),
        ({"execution.epoch.trigger": "available-now"}, True),
        ({"execution.epoch.trigger": "available-now", "execution.epoch.resume": "false"}, False),
        ({"execution.epoch.resume": "true"}, True),
    ],
)
def test_epochs_that_go_on_from_the_last_run(settings: dict[str, str], resumes: bool) -> None:
    in_epochs = {"execution.exchange": "spark", "execution.checkpointing.dir": "/checkpoints"}
    text = explained(**in_epochs, **settings)
    assert "checkpoints: one with every epoch, in /checkpoints\n" in text
    assert ("starts from: the last retained checkpoint of a job with this name" in text) == resumes
    assert "starts from: /sp\n" in explained(**in_epochs, **settings, **{"execution.state-recovery.path": "/sp"})


def test_batch() -> None:
    text = explained(**{"execution.runtime-mode": "AUTOMATIC", "state.backend.type": "rocksdb"})
    assert "Execution: batch, because execution.runtime-mode is AUTOMATIC and all sources are bounded" in text
    assert "HASH, blocking (Spark shuffle), grouped by key -> 2" in text
    assert "slots:       for one run" in text
    assert "state.backend.type has no effect" in text
    assert " slots\n" not in text


def test_json_says_the_same() -> None:
    plan = json.loads(explained("json", **{"execution.exchange": "spark"}))
    assert plan["execution"]["kind"] == "epochs"
    assert plan["execution"]["reason"] == "execution.exchange is spark"
    assert plan["execution"]["trigger"].startswith("continuous")
    assert [[operator["name"] for operator in node["operators"]] for node in plan["nodes"]] == [
        ["Source: Sequence Source", "Map"],
        ["Reduce", "Sink: Print to Std. Out"],
    ]
    assert plan["nodes"][1]["inputs"][0]["exchange"] == "blocking"
    assert plan["nodes"][0]["operators"][0]["defined_at"].rpartition(":")[0].endswith("test_explain.py")


def test_mermaid() -> None:
    assert '-->|"HASH, pipelined"| v2' in explained("mermaid")


def test_an_unknown_format() -> None:
    with pytest.raises(ValueError, match="text, json, mermaid"):
        explained("yaml")


def test_the_program_can_be_run_afterwards() -> None:
    env = environment()
    stream = program(env)
    sink = stream.map(lambda pair: pair[1])
    sink.print()
    assert env.explain() == env.explain()
    assert sorted(dict(collect(stream)).items()) == [(0, 18), (1, 22), (2, 15)]
