"""Chaos with the outside in it: workers, drivers, Kafka brokers and PostgreSQL fail under a job.

Records go from one topic to another and to a table, and every record has to be in both exactly once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from firesteel.process import fault_points
from firesteel.testing.services.kafka_broker import KafkaBroker
from firesteel.testing.services.kafka_cluster import GROUPS_TOPIC, TRANSACTIONS_TOPIC, KafkaCluster
from firesteel.testing.services.postgres_server import PostgresServer
from firesteel.testing.services.processes import die_with_parent
from tests.support.chaos.outside_job import INPUT, KEYS, OUTPUT, PARTITIONS, TABLE, result_of
from tests.support.chaos.processes import ROOT, Family, kill
from tests.support.chaos.reader import Violation
from tests.support.chaos.report import FaultReport, Report, as_text, summarize
from tests.support.chaos.timeline import Timeline

__all__ = ["CLUSTER_KINDS", "KINDS", "OutsideRun", "Violation", "main"]

POINTS = ("checkpoint.ack", "checkpoint.stored", "sink.commit", "sink.committed")
"""The last three are between the completion of a checkpoint and the end of its commits."""
KINDS = (
    "kill a worker",
    "exception in user code",
    "kill the driver",
    "kill the broker",
    "stop the broker for a while",
    "restart the broker in order",
    "kill PostgreSQL",
    "terminate the sessions of PostgreSQL",
    "stop a worker for a while",
    *(f"crash at {point}" for point in POINTS),
)
OF_THE_BROKER = ("kill the broker", "stop the broker for a while", "restart the broker in order")
LEADERS = {
    "the leader of the input": INPUT,
    "the leader of the output": OUTPUT,
    "the coordinator of transactions": TRANSACTIONS_TOPIC,
    "the coordinator of the group": GROUPS_TOPIC,
}
"""Brokers of a cluster, and the topic whose first partition they lead."""
CLUSTER_KINDS = (
    *(kind for kind in KINDS if kind not in OF_THE_BROKER),
    *(f"kill {who}" for who in LEADERS),
    *(f"stop {who} for a while" for who in LEADERS),
    "move all leaders",
)
"""What can happen where there are several brokers."""
DEADLINE_S = 360.0


class CommittedReader(threading.Thread):
    """A read-committed consumer that checks every record of the output as it comes."""

    def __init__(self, servers: str, records: int) -> None:
        super().__init__(name="committed-reader", daemon=True)
        self.seen = bytearray(records)
        self.count = 0
        self.violation: str | None = None
        self._servers = servers
        self._ended = threading.Event()

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(OUTPUT, number, 0) for number in range(PARTITIONS)])
        while not self._ended.is_set():
            for message in consumer.consume(10_000, 0.1):
                if message.error() is None:
                    self._check(message.value().decode())
        consumer.close()

    def _check(self, text: str) -> None:
        number, _, result = text.partition(",")
        index = int(number)
        if self.seen[index]:
            self.violation = f"record {index} is in the output twice"
        elif int(result) != result_of(index):
            self.violation = f"the result of record {index} is {result} instead of {result_of(index)}"
        self.seen[index] = 1
        self.count += 1

    def stop(self) -> None:
        self._ended.set()
        self.join(30)


class OutsideRun(Timeline):
    """One job under faults, with records that are fed as it goes."""

    poll_s = 0.05

    def __init__(
        self,
        seed: int,
        kinds: list[str],
        records: int,
        directory: Path,
        say: Callable[[str], None],
        brokers: int = 1,
    ) -> None:
        super().__init__(say)
        self._brokers = brokers
        self._random = random.Random(seed)
        self._kinds = kinds
        self._records = records
        self._directory = directory
        self._fed = 0
        self._step = records // (len(kinds) + 1)
        self._parallelism = 2
        self._driver: subprocess.Popen[bytes] | None = None
        self._reader: CommittedReader | None = None
        self._family = Family()
        self._runs = 0
        self._backend = self._random.choice(("hashmap", "rocksdb"))
        self.report = Report(seed, self._backend, "aligned", False, {})
        self._control = directory / "control"
        self._checkpoints = directory / "checkpoints"
        for path in (self._control, self._checkpoints, directory / "tmp"):
            path.mkdir(parents=True)

    def execute(self) -> Report:
        """Runs it all; the report says whether it passed."""
        try:
            with ExitStack() as stack:
                self._kafka: Any = stack.enter_context(
                    KafkaBroker(heap="512m") if self._brokers == 1 else KafkaCluster(brokers=self._brokers)
                )
                for topic in (INPUT, OUTPUT):
                    self._kafka.create_topic(topic, PARTITIONS)  # type: ignore[attr-defined]
                self._postgres = stack.enter_context(PostgresServer())
                with self._postgres.connect(autocommit=True) as connection:
                    connection.execute(f"CREATE TABLE {TABLE} (number bigint, result bigint)")
                self._reader = CommittedReader(self._kafka.bootstrap_servers, self._records)  # type: ignore[attr-defined]
                self._reader.start()
                stack.callback(self._reader.stop)
                stack.callback(self._end_driver)
                self._start_driver()
                self._go_on()
            self.report.passed = True
        except AssertionError as error:
            self.report.error = f"{type(error).__name__}: {error}"
        finally:
            self.report.seconds = round(self._now(), 1)
            self.report.drivers = self._runs
            self.report.events = self._fed
            self.report.results = 0 if self._reader is None else self._reader.count
        return self.report

    def _go_on(self) -> None:
        step = self._step
        self._feed(step)
        self._wait_for(lambda: self._reader.count > 0, "the first output")
        for number, kind in enumerate(self._kinds, 1):
            self._feed(step // 2)
            # faults strike in the middle of work: what was fed is not through yet
            self.wait(self._random.uniform(0.0, 1.5))
            report = FaultReport(number, kind, kind, overlapped=False)
            self.report.faults.append(report)
            self.say(f"fault {number}/{len(self._kinds)}: {kind}")
            report.events_before = before = self._fed
            report.at = self._now()
            report.done = self._inject(kind)
            self._feed(step // 4 if number < len(self._kinds) else self._records - self._fed)
            # the next one strikes before the rest is through
            self._wait_for(lambda: self._reader.count > before, f"output after fault {number} ({kind})")
            report.recovered_after = round(self._now() - report.at, 2)
            through = f"{self._reader.count:,} of {self._fed:,} are through"
            self.say(f"  {through} after {report.recovered_after} s ({report.done})")
        self._wait_for(lambda: self._reader.count >= self._records, "the rest")
        self._wait_for(lambda: self._in_table() >= self._records, "the rest in the table")
        self.wait(2.5)  # whatever is there twice would come now
        self._judge()

    def _judge(self) -> None:
        missing = self._reader.seen.count(0)
        if missing or self._reader.count != self._records:
            raise Violation(f"{missing} records are missing, {self._reader.count} came out of {self._records}")
        with self._postgres.connect() as connection:
            query = f"SELECT count(*), count(DISTINCT number), count(*) FILTER (WHERE result <> number / {KEYS} + 1)"
            found = connection.execute(f"{query} FROM {TABLE}").fetchone()
        if found != (self._records, self._records, 0):
            raise Violation(f"the table has (rows, different ones, wrong ones) {found} instead of {self._records}")
        self.report.left_over = {"rows of PostgreSQL checked": found[0]}

    # ---- faults ------------------------------------------------------------------------------------

    def _inject(self, kind: str) -> str:
        if kind.startswith("crash at "):
            return self._crash_at(kind.removeprefix("crash at "))
        if kind in CLUSTER_KINDS and kind not in KINDS:
            return self._change_leaders(kind)
        return {
            "kill a worker": self._kill_worker,
            "exception in user code": self._raise,
            "kill the driver": self._kill_driver,
            "kill the broker": lambda: self._away(self._kafka.kill, self._kafka.start),
            "restart the broker in order": self._restart_broker,
            "stop the broker for a while": lambda: self._pause(self._kafka.pid, 4.0),
            "kill PostgreSQL": lambda: self._away(self._postgres.kill, self._postgres.start),
            "terminate the sessions of PostgreSQL": self._terminate_sessions,
            "stop a worker for a while": lambda: self._pause(self._worker(), 3.0),
        }[kind]()

    def _worker(self) -> int:
        def workers() -> list[int]:
            self._family.look(self._driver.pid)  # type: ignore[union-attr]
            alive = set(self._family.alive())
            return sorted({int(path.name.split("-")[1]) for path in self._control.glob("slot-*")} & alive)

        return int(self._random.choice(self._wait_for(workers, "a worker")))

    def _kill_worker(self) -> str:
        pid = self._worker()
        kill(pid)
        return f"process {pid}"

    def _raise(self) -> str:
        order = self._control / "raise"
        order.touch()
        self._feed(self._step // 4)  # so that there is something to fail at
        self._wait_for(lambda: not order.exists(), "user code to fail")
        return "once"

    def _kill_driver(self) -> str:
        self._parallelism = self._random.choice((1, 2, 3))
        self._end_driver(orderly=False)
        self._start_driver()
        return f"again at parallelism {self._parallelism}"

    def _away(self, kill_it: Callable[[], Any], start: Callable[[], Any]) -> str:
        # of a cluster, sometimes so long that others lead, and go on, before it is back
        seconds = round(self._random.uniform(0.0, 3.0 if self._brokers == 1 else 8.0), 1)
        kill_it()
        self.wait(seconds)
        start()
        return f"away for {seconds} s"

    def _change_leaders(self, kind: str) -> str:
        cluster = self._kafka
        if kind == "move all leaders":
            node = self._random.randint(1, self._brokers)
            cluster.move_leaders((INPUT, OUTPUT, TRANSACTIONS_TOPIC, GROUPS_TOPIC), node)
            return f"to broker {node}"
        node = cluster.leader(next(topic for who, topic in LEADERS.items() if who in kind))
        if kind.startswith("kill "):
            done = self._away(lambda: cluster.kill(node), lambda: cluster.start_again(node))
        else:
            # for longer than broker.session.timeout.ms: the others get its partitions
            done = self._pause(cluster.brokers[node - 1].pid, 6.0)
            cluster.await_in_sync()
        return f"broker {node}, {done}"

    def _restart_broker(self) -> str:
        os.kill(self._kafka.pid, signal.SIGTERM)
        self._wait_for(lambda: not _is_alive(self._kafka.pid), "the broker to stop")
        self._kafka.restart()
        return "with SIGTERM"

    def _pause(self, pid: int, seconds: float) -> str:
        kill(pid, signal.SIGSTOP)
        try:
            self.wait(seconds)
        finally:
            kill(pid, signal.SIGCONT)
        return f"process {pid} for {seconds} s"

    def _terminate_sessions(self) -> str:
        with self._postgres.connect(autocommit=True) as connection:
            query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            found = connection.execute(f"{query} AND backend_type = 'client backend'").fetchone()
        return f"{found[0]} sessions"

    def _crash_at(self, point: str) -> str:
        path = self._control / f"{point}.kill"
        path.touch()
        self._feed(self._step // 4)
        self._wait_for(lambda: not path.exists(), f"the fault point {point}")
        return "reached"

    # ---- the driver --------------------------------------------------------------------------------

    def _start_driver(self) -> None:
        newest = self._newest_checkpoint()
        if newest is None and self._reader.count:
            raise Violation("there is output, but no complete checkpoint to go on from")
        configuration = {
            "parallelism.default": str(self._parallelism),
            "spark.master": f"local[{self._parallelism}]",
            "state.backend.type": self._backend,
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.timeout": "60 s",
            "execution.checkpointing.tolerable-failed-checkpoints": "1000",
            "execution.checkpointing.dir": str(self._checkpoints),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "heartbeat.interval": "1 s",
            "heartbeat.timeout": "10 s",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "200 ms",
        }
        if newest is not None:
            configuration["execution.state-recovery.path"] = str(newest)
            configuration["execution.state-recovery.claim-mode"] = "CLAIM"
        request = {
            "configuration": configuration,
            "kafka": self._kafka.bootstrap_servers,
            "postgres": f"postgresql://postgres@127.0.0.1:{self._postgres.port}/postgres",
            "orders": str(self._control),
        }
        entries = ",".join(f"{point}=kill@{self._control / f'{point}.kill'}" for point in POINTS)
        self._family = Family()
        with (self._control / f"driver-{self._runs}.log").open("wb") as log:
            self._driver = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("outside_job.py")), json.dumps(request)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "TMPDIR": str(self._directory / "tmp"),
                    fault_points.VARIABLE: entries,
                },
                cwd=self._directory,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._runs += 1
        self.say(f"  driver {self._runs} starts, from {newest.name if newest else 'the beginning'}")

    def _newest_checkpoint(self) -> Path | None:
        """The directory of the job that has the newest complete checkpoint of all."""
        found = []
        for path in self._checkpoints.glob("*/chk-*/_metadata"):
            with suppress(FileNotFoundError):  # subsumed meanwhile, by a process that is about to end
                found.append((path.stat().st_mtime_ns, path.parents[1]))
        return max(found)[1] if found else None

    def _end_driver(self, *, orderly: bool = True) -> None:
        driver = self._driver
        if driver is None:
            return
        self._family.look(driver.pid)
        with suppress(ProcessLookupError):
            driver.send_signal(signal.SIGINT if orderly else signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            driver.wait(30)
        self._family.kill()
        driver.kill()
        driver.wait(30)

    # ---- what goes on meanwhile --------------------------------------------------------------------

    def _feed(self, count: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._kafka.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 2_000_000,
                "log_level": 0,
            }
        )
        end = self._fed + count
        for first in range(self._fed, end, 5000):
            numbers = range(first, min(first + 5000, end))
            # a partition of its own for each record is passed over by produce_batch
            for partition in range(PARTITIONS):
                values = [{"value": b"%d" % n} for n in numbers if n % KEYS % PARTITIONS == partition]
                producer.produce_batch(INPUT, values, partition)
            producer.poll(0)
        if producer.flush(120):
            raise Violation("the input could not be written in 120 s")
        self._fed = end

    def _in_table(self) -> int:
        with self._postgres.connect() as connection:
            found: int = connection.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0]
        return found

    def _wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        return self.wait_for(condition, lambda: self._account(what), DEADLINE_S)

    def _account(self, what: str) -> str:
        return f"{what}; {self._reader.count} of {self._fed} are through\n{self._last_words()}"

    def _tick(self) -> None:
        if self._reader.violation is not None:
            raise Violation(self._reader.violation)
        assert self._driver is not None
        code = self._driver.poll()
        if code is None:
            return
        if code != -signal.SIGKILL:
            raise Violation(f"the driver ended with {code}:\n{self._last_words()}")
        self.say(f"  driver {self._runs} was killed by a fault point")
        self._family.kill()
        self._start_driver()

    def _last_words(self) -> str:
        return (self._control / f"driver-{self._runs - 1}.log").read_text(errors="replace")[-3000:]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Runs it; 0 if it passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.outside", description=__doc__)
    parser.add_argument("--faults", type=int, default=20, help="how many faults (20)")
    parser.add_argument("--records", type=int, default=1_000_000, help="how many records (a million)")
    parser.add_argument("--seed", type=int, help="what decides all that is random; itself random by default")
    parser.add_argument("--brokers", type=int, default=1, help="of the Kafka cluster (1); with 3, leaders change")
    parser.add_argument("--kinds", action="append", help="only this kind of fault; may be repeated")
    parser.add_argument("--json", action="store_true", help="the report as JSON on standard output")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    drawn = random.Random(seed)
    kinds: list[str] = []
    while len(kinds) < options.faults:
        known = list(options.kinds or (KINDS if options.brokers == 1 else CLUSTER_KINDS))
        kinds += drawn.sample(known, len(known))
    base = Path(tempfile.mkdtemp(prefix="firesteel-chaos-"))
    sys.stderr.write(f"seed {seed}, {options.faults} faults, {options.records:,} records\n")
    run = OutsideRun(seed, kinds[: options.faults], options.records, base / "run", _say, options.brokers)
    report = run.execute()
    if report.passed:
        shutil.rmtree(base, ignore_errors=True)
    else:
        sys.stderr.write(f"FAILED: {report.error}\neverything is in {base}\n")
    summary = summarize(seed, [report])
    if options.json:
        sys.stdout.write(json.dumps({**summary, "rounds": [report.as_dict()]}, indent=1) + "\n")
    else:
        sys.stdout.write(as_text(summary))
    return 0 if report.passed else 1
