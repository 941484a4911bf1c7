"""What a Spark barrier task does: be one slot of a job until the JobMaster says it is over."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import cloudpickle

from firesteel.common import options
from firesteel.filesystem.filesystem import close_filesystems
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.deployment import create_deployment
from firesteel.runtime import messages
from firesteel.runtime.control import ControlConnection, dial_control
from firesteel.runtime.failure import describe_failure
from firesteel.runtime.mailbox import SystemClock
from firesteel.runtime.messages import Address
from firesteel.runtime.network.environment import NetworkEnvironment
from firesteel.runtime.task_executor import TaskCancelled, TaskExecutor
from firesteel.runtime.wiring import Wiring, network_config
from firesteel.spark.user_output import UserOutput

__all__ = ["SlotMain"]

GC_THRESHOLDS = (50_000, 20, 20)
_FLUSHING = (messages.TaskStateChanged, messages.SlotStopped, messages.SlotFailed)
INTERRUPT_AFTER_S = 0.5
"""How long after a cancellation user code that does not return is interrupted, and again after that."""


class SlotMain:
    """The function of the barrier stage; pickled to every executor."""

    def __init__(
        self, serialized_job: bytes, attempt: int, slots: int, control: Address, secret: bytes, *, local: bool
    ):
        self._serialized_job = serialized_job
        self._attempt = attempt
        self._slots = slots
        self._control = control
        self._secret = secret
        self._local = local

    def __call__(self, _partition: Iterable[Any]) -> Iterator[Any]:
        """Runs the slot; yields nothing."""
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        slot = context.partitionId()
        host = "127.0.0.1" if self._local else context.getTaskInfos()[slot].address.rpartition(":")[0]
        thresholds = gc.get_threshold()
        # a batch is thousands of tuples that live for a millisecond: looking for cycles among them is wasted
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            self._run(slot, host)
        finally:
            gc.set_threshold(*thresholds)  # Spark reuses the process
        return iter(())

    def _run(self, slot: int, host: str) -> None:
        # the JobMaster itself has id 0 in the handshake
        control = dial_control(self._control, self._secret, slot + 1)
        try:
            try:
                job = limit_parallelism(cloudpickle.loads(self._serialized_job), self._slots)
            except Exception as error:  # noqa: BLE001 - told to the JobMaster, not to Spark
                self._tell_not_loaded(error, control, slot, host)
                return
            configuration = job.configuration
            network = NetworkEnvironment(
                self._secret, host, slot, advertised_host=host, config=network_config(configuration)
            )
            try:
                gateway = _Gateway(control)
                executor = TaskExecutor(
                    {slot: create_deployment(job, self._attempt)[slot]},
                    gateway,
                    network,
                    SystemClock(),
                    Wiring([slot], configuration, network),
                    attempt=self._attempt,
                    host=host,
                )
                timeout = configuration.get(options.TASK_CANCELLATION_TIMEOUT).to_millis() / 1000
                interval = configuration.get(options.HEARTBEAT_INTERVAL).to_millis() / 1000
                gateway.output = UserOutput(control.send, self._attempt, slot, lambda: executor.cancel_requested)
                watch = _Watch(executor, control, gateway.output, self._attempt, slot, interval, timeout)
                with watch, gateway.output:
                    control.send(
                        messages.RegisterSlot(
                            self._attempt, slot, socket.gethostname(), network.address, os.getpid(), host
                        )
                    )
                    self._execute(executor, gateway, slot)
            finally:
                network.close()
                close_filesystems()
        finally:
            control.close()

    def _tell_not_loaded(self, error: Exception, control: ControlConnection, slot: int, host: str) -> None:
        failure = replace(
            describe_failure(error),
            message=f"The program cannot be loaded in its slots: {error}",
            hint="What the program imports must be installed where Spark's Python workers run, or be shipped there "
            "with spark.submit.pyFiles; Firesteel has to be the same version in both places.",
        )
        attempt = self._attempt
        control.send(messages.RegisterSlot(attempt, slot, socket.gethostname(), (host, 0), os.getpid(), host))
        control.send(messages.SlotFailed(attempt, slot, failure))

    def _execute(self, executor: TaskExecutor, gateway: _Gateway, slot: int) -> None:
        try:
            executor.run()
        except ConnectionError:
            pass  # the JobMaster is gone: nobody is left to tell
        except Exception as error:  # noqa: BLE001 - told to the JobMaster, not to Spark
            try:
                # when a job is cancelled, a peer that is gone may be noticed before the cancellation
                failure, accumulators = describe_failure(error), executor.accumulators()
                gateway.send(messages.SlotFailed(self._attempt, slot, failure, accumulators))
            except ConnectionError:
                pass


class _Gateway:
    """The slot's way to its JobMaster: what functions printed goes before whatever may end the job."""

    def __init__(self, control: ControlConnection):
        self._control = control
        self.output: UserOutput | None = None

    def send(self, message: messages.SlotMessage) -> None:
        """Sends a message."""
        if self.output is not None and isinstance(message, _FLUSHING):
            self.output.flush(end=not isinstance(message, messages.TaskStateChanged))
        self._control.send(message)


class _Watch:
    """Threads around the mailbox: what the JobMaster says, heartbeats, and interrupts for user code that hangs."""

    def __init__(
        self,
        executor: TaskExecutor,
        control: ControlConnection,
        output: UserOutput,
        attempt: int,
        slot: int,
        heartbeat_s: float,
        cancellation_timeout_s: float,
    ):
        self._executor = executor
        self._control = control
        self._output = output
        self._attempt = attempt
        self._slot = slot
        self._heartbeat_s = heartbeat_s
        self._timeout_s = cancellation_timeout_s
        self._over = threading.Event()
        self._wake = threading.Event()
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._watch, name="firesteel-slot-watch", daemon=True)

    def __enter__(self) -> None:
        self._handler = signal.signal(signal.SIGUSR1, self._interrupt)
        self._control.start(self._on_message, self._on_lost, "firesteel-slot-control")
        self._thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._wake.set()
        self._thread.join(5.0)
        signal.signal(signal.SIGUSR1, self._handler)

    def _on_message(self, message: messages.JobMasterMessage) -> None:
        if self._output.acknowledge(message):
            return
        self._executor.deliver(message)
        if isinstance(message, messages.CancelSlot):
            self._wake.set()

    def _on_lost(self, reason: str) -> None:
        # a slot does not outlive its JobMaster
        self._on_message(messages.CancelSlot(f"the JobMaster is gone: {reason}"))

    def _watch(self) -> None:
        cancelled_at: float | None = None
        while not self._over.is_set():
            if self._executor.cancel_requested:
                if cancelled_at is None:
                    cancelled_at = time.monotonic()
                if self._over.wait(INTERRUPT_AFTER_S):
                    return
                if 0 < self._timeout_s < time.monotonic() - cancelled_at:
                    os._exit(70)  # user code cannot be interrupted: Spark starts a new worker process
                if self._main is not None:
                    signal.pthread_kill(self._main, signal.SIGUSR1)
                continue
            if self._wake.wait(self._heartbeat_s):
                self._wake.clear()
                continue
            try:
                self._control.send(messages.Heartbeat(self._attempt, self._slot, time.time_ns() // 1_000_000))
            except ConnectionError:
                return

    def _interrupt(self, _signal: int, _frame: Any) -> None:
        if self._executor.cancel_requested and not self._over.is_set():
            raise TaskCancelled("interrupted")
