"""One job of a scenario: how it is built, steered, watched and ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import Control, ControlledSource, KeyTraffic, NotingSink, Outputs
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueState, ValueStateDescriptor

__all__ = ["PAIR", "Checkpoint", "KeyedSum", "ScenarioJob", "Scene", "checkpoint_options", "percentile", "spent_ms"]

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
PATIENCE_S = 300.0
POLL_S = 0.005
NEVER = "1 h"
"""An interval that no run lasts: the scenario triggers its checkpoints itself."""


def checkpoint_options(directory: Path, backend: str, interval: str = NEVER) -> dict[str, str]:
    """Checkpoints on, with everything else as it is by default."""
    return {
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": interval,
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "state.backend.type": backend,
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that ``share`` of the values do not exceed.

    >>> percentile([4, 1, 3, 2], 0.5), percentile([4, 1, 3, 2], 0.99)
    (2, 4)
    """
    ordered = sorted(values)
    at = max(-(-len(ordered) * share // 1), 1)
    return ordered[int(at) - 1] if ordered else None


def spent_ms(since: float) -> float:
    """Milliseconds since a time.monotonic()."""
    return (time.monotonic() - since) * 1000


class KeyedSum(KeyedProcessFunction):
    """Running sum per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state."""
        self._sum: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Adds the value to its key's sum."""
        total = (self._sum.value() or 0) + value[1]
        self._sum.update(total)
        yield value[0], total


@dataclass(frozen=True)
class Checkpoint:
    """What the coordinator knows of one completed checkpoint."""

    number: int
    triggered_ms: int
    duration_ms: int
    """From the trigger to the last acknowledgement."""
    bytes_written: int
    state_bytes: int
    in_flight_bytes: int
    sync_ms: tuple[int, ...]
    """How long each task stood still."""
    alignment_ms: int
    """The longest of all tasks."""
    is_unaligned: bool


class CheckpointLog:
    """Keeps every completed checkpoint in detail; the coordinator itself forgets all but the last ten."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._known: dict[int, Checkpoint] = {}

    def read(self) -> list[Checkpoint]:
        """All that have completed, in order; to be called at least once in ten checkpoints."""
        for entry in self._history():
            number = entry["id"]
            if entry["status"] == "COMPLETED" and number not in self._known:
                subtasks = list(self._subtasks(number))
                self._known[number] = Checkpoint(
                    number=number,
                    triggered_ms=entry["trigger_timestamp"],
                    duration_ms=entry["end_to_end_duration"],
                    bytes_written=entry["checkpointed_size"],
                    state_bytes=entry["state_size"],
                    in_flight_bytes=entry["persisted_data"],
                    sync_ms=tuple(subtask["checkpoint"]["sync"] for subtask in subtasks),
                    alignment_ms=max(subtask["alignment"]["duration"] for subtask in subtasks),
                    is_unaligned=any(subtask["unaligned_checkpoint"] for subtask in subtasks),
                )
        return [self._known[number] for number in sorted(self._known)]

    def failures(self) -> list[str]:
        """What went wrong with those of the last checkpoints that failed."""
        return [str(entry.get("failure_message")) for entry in self._history() if entry["status"] == "FAILED"]

    def _history(self) -> list[dict[str, Any]]:
        return list(self._handle.checkpoint_statistics()["history"])

    def _subtasks(self, number: int) -> Iterable[dict[str, Any]]:
        statistics = self._handle.snapshot.checkpoints
        for vertex in statistics.details(number)["tasks"]:
            for subtask in statistics.subtask_details(number, vertex)["subtasks"]:
                if subtask["status"] == "completed":
                    yield subtask


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


class ScenarioJob:
    """A submitted job with its controls."""

    def __init__(self, env: StreamExecutionEnvironment, control: Control, outputs: Outputs) -> None:
        self.control = control
        self.outputs = outputs
        self.submitted_at = time.monotonic()
        self.submitted_time = time.time()
        self._client = env.execute_async("bench")
        self._handle = cast("Any", self._client._handle)
        self._result = self._client.get_job_execution_result()
        self.log = CheckpointLog(self._handle)

    def is_running(self) -> bool:
        """Whether every task runs, its state restored."""
        return bool(self._handle._master.checkpoints.is_running)

    def check(self) -> None:
        """Raises what the job failed with, if it ended."""
        if self._result.done():
            self._result.result()
            raise RuntimeError("the job ended by itself")

    def wait(self, condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> None:
        """Waits for a condition; raises if the job ends first or it takes too long."""
        deadline = time.monotonic() + patience_s
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {patience_s:.0f} s in vain for {what}; {self.log.failures()}")
            time.sleep(POLL_S)

    def watch(self, seconds: float) -> None:
        """Lets the job run, and keeps what it says of its checkpoints."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.25))
            self.check()
            self.log.read()

    def emit(self, per_split: int, splits: int = CORES) -> None:
        """Has every split emit up to that many records in all, and waits until all have arrived."""
        self.control.limit = per_split
        self.wait(lambda: self.control.positions() >= per_split * splits, f"{per_split} records of each split")
        # sources may be done before the JobMaster knows that all tasks run: it would refuse a checkpoint
        self.wait(self.is_running, "all tasks to run")
        self._settle()

    def _settle(self) -> None:
        """Waits until the sinks get no more records."""
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < 0.1:
            self.check()
            records = self.outputs.records()
            if records != seen:
                seen, since = records, time.monotonic()
            time.sleep(POLL_S)

    def throughput(self, seconds: float, enough: Callable[[], Any] = lambda: True) -> dict[str, float]:
        """Records that reach the sinks, measured that long or until there is enough, whichever is later.

        A second's records, and the slots' processor time for one: that tells more where others use the machine too.
        """
        slots = [psutil.Process(pid) for pid in self.outputs.pids()]
        begin, records, cpu_s = time.monotonic(), self.outputs.records(), _cpu_s(slots)
        self.watch(seconds)
        self.wait(enough, "what was to be measured")
        count = self.outputs.records() - records
        return {
            "records_per_s": count / (time.monotonic() - begin),
            "cpu_ns": (_cpu_s(slots) - cpu_s) * 1e9 / max(count, 1),
        }

    def checkpoint(self, patience_s: float = PATIENCE_S) -> tuple[float, str, Checkpoint]:
        """Takes a checkpoint now: milliseconds until it was complete, its path, and what is known of it."""
        begin = time.monotonic()
        future: Future[str] = self._handle.trigger_checkpoint()
        self.wait(future.done, "a checkpoint", patience_s)
        took = spent_ms(begin)
        return took, future.result(), self.log.read()[-1]

    def savepoint(self, directory: Path) -> tuple[float, str]:
        """Takes a savepoint in canonical format: milliseconds, and its path."""
        begin = time.monotonic()
        future: Future[str] = self._handle.trigger_savepoint(str(directory))
        self.wait(future.done, "a savepoint")
        return spent_ms(begin), future.result()

    def cancel(self) -> None:
        """Ends the job and waits until nothing of it runs."""
        if not self._result.done():
            self._client.cancel().result()
        self.control.close()


class Scene:
    """What the jobs of one run share: the traffic, the directories, and where they run."""

    def __init__(self, run: Run, traffic: KeyTraffic) -> None:
        self.run = run
        self.traffic = traffic
        self.scratch = Path(run.scratch)
        self.checkpoints = self.scratch / "checkpoints"
        self._jobs = 0

    def start(
        self,
        build: Callable[[DataStream, NotingSink], Any],
        options: Mapping[str, str],
        *,
        limit: int | None = 0,
        delay_s: float = 0.0,
    ) -> ScenarioJob:
        """Submits a job that `build` makes of the source's stream and a sink; without a limit it runs at full speed."""
        self._jobs += 1
        directory = self.scratch / f"job-{self._jobs}"
        directory.mkdir()
        control = Control(self.scratch / f"control-{self._jobs}", create=True)
        if limit is None:
            control.lift_limit()
        else:
            control.limit = limit
        env = self._environment(options)
        source = ControlledSource(self.traffic, control.path)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "controlled", Types.LONG())
        build(stream.uid("source"), NotingSink(directory, delay_s))
        return ScenarioJob(env, control, Outputs(directory))

    def keyed_sum(self, stream: DataStream, sink: NotingSink) -> None:
        """map, key_by and the running sum, as in the case of that name."""
        keys = self.traffic.keys
        pairs = stream.map(lambda x: (x % keys, x), PAIR)
        sums = pairs.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(), PAIR).uid("sum")
        sums.sink_to(sink).uid("sink")

    def _environment(self, options: Mapping[str, str]) -> StreamExecutionEnvironment:
        config = Configuration()
        for key, value in {"spark.master": f"local[{CORES}]", **options}.items():
            config.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(config)
        env.set_parallelism(CORES)
        if self.run.params.get("in_process"):
            from firesteel.testing.in_process import InProcessExecutor

            env._executor = InProcessExecutor()
        return env
