"""Entry point of a Spark barrier task: runs one slot of a job until the JobMaster ends it."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cloudpickle

from firesteel.config import cluster_options
from firesteel.filesystem.stores import close_filesystems
from firesteel.graph.deployment import Deployment
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.slots.task_manager_id import embedded_task_manager_id, executor_task_manager_id
from firesteel.process.pyflink_names import resolve_pyflink_names
from firesteel.process.worker_environment import enter_worker_environment
from firesteel.runtime.codegen.inlining import register_inline_expressions
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model import messages
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.model.messages import Address
from firesteel.runtime.network.environment import NetworkEnvironment
from firesteel.runtime.network.tls_settings import TlsSettings, open_tls
from firesteel.runtime.slot.control import ControlConnection, dial_control
from firesteel.runtime.slot.mailbox import SystemClock
from firesteel.runtime.slot.task_executor import TaskExecutor
from firesteel.runtime.slot.wiring import Wiring, network_config
from firesteel.spark.pipelined.slot_watch import MemoryBudget, SlotTimeouts, SlotWatch
from firesteel.spark.session.cluster_info import executor_id_of_worker
from firesteel.spark.session.function_logging import function_logging
from firesteel.spark.session.user_output import UserOutput

__all__ = ["SlotMain"]

GC_THRESHOLDS = (50_000, 20, 20)
_FLUSHING = (messages.TaskStateChanged, messages.SlotStopped, messages.SlotFailed)


class SlotMain:
    """The function of the barrier stage; pickled to every executor."""

    def __init__(
        self,
        serialized_job: bytes,
        attempt: int,
        slots: int,
        control: Address,
        secret: bytes,
        *,
        local: bool,
        memory_limit: int | None = None,
        tls: TlsSettings | None = None,
    ):
        self._serialized_job = serialized_job
        self._attempt = attempt
        self._slots = slots
        self._control = control
        self._secret = secret
        self._local = local
        self._memory_limit = memory_limit
        self._tls = tls

    def __call__(self, _partition: int, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Runs the slot; yields nothing."""
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        slot = context.partitionId()
        self.run(slot, context.getTaskInfos()[slot].address)
        return rows  # none; Spark only uses a worker again that has read all its input

    def run(self, slot: int, address: str) -> None:
        """Runs a slot in the worker that Spark gives that address to."""
        enter_worker_environment()
        resolve_pyflink_names()
        place = _Place.of(address, local=self._local)
        thresholds = gc.get_threshold()
        # a batch is thousands of tuples that live for a millisecond: looking for cycles among them is wasted
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            self._run(slot, place)
        finally:
            gc.set_threshold(*thresholds)  # Spark reuses the process

    def _run(self, slot: int, place: _Place) -> None:
        host = place.host
        tls = open_tls(self._tls)
        # the JobMaster itself has id 0 in the handshake
        control = dial_control(self._control, self._secret, slot + 1, tls)
        try:
            try:
                job = limit_parallelism(cloudpickle.loads(self._serialized_job), self._slots)
            except Exception as error:  # noqa: BLE001 - sent to the JobMaster, not to Spark
                self._tell_not_loaded(error, control, slot, place)
                return
            configuration = job.configuration
            network = NetworkEnvironment(
                self._secret, host, slot, advertised_host=host, config=network_config(configuration), tls=tls
            )
            try:
                gateway = _Gateway(control)
                register_inline_expressions(job.inline_expressions)
                tasks = Deployment(job, self._attempt).tasks_in(slot)
                executor = TaskExecutor(
                    {slot: tasks},
                    gateway,
                    network,
                    SystemClock(),
                    Wiring([slot], configuration, network),
                    attempt=self._attempt,
                    host=host,
                )
                timeouts = SlotTimeouts.of(configuration)
                control.limit_silence(timeouts.heartbeat_timeout)
                gateway.output = UserOutput(control.send, self._attempt, slot, lambda: executor.cancel_requested)
                budget = self._budget(slot, job, tasks)
                watch = SlotWatch(executor, control, gateway.output, self._attempt, slot, timeouts, budget)
                with function_logging(configuration, job.job_id), watch, gateway.output:
                    control.send(self._registration(slot, place, network.address))
                    self._execute(executor, gateway, slot)
            finally:
                network.close()
                close_filesystems()
        finally:
            control.close()

    def _tell_not_loaded(self, error: Exception, control: ControlConnection, slot: int, place: _Place) -> None:
        failure = replace(
            describe_failure(error),
            message=f"The program cannot be loaded in its slots: {error}",
            hint="Modules that the program imports must be installed where Spark's Python workers run, or be shipped "
            "with the job: add_python_file, set_python_requirements. The version of Firesteel must be the same in both "
            "places.",
        )
        control.send(self._registration(slot, place, (place.host, 0)))
        control.send(messages.SlotFailed(self._attempt, slot, failure))

    def _registration(self, slot: int, place: _Place, data_address: Address) -> messages.RegisterSlot:
        return messages.RegisterSlot(
            self._attempt, slot, socket.gethostname(), data_address, os.getpid(), place.executor_id, place.task_manager
        )

    def _budget(self, slot: int, job: JobGraph, tasks: Sequence[TaskDeploymentDescriptor]) -> MemoryBudget | None:
        """The limit of the cluster, or a lower one of the job."""
        own = job.configuration.get(cluster_options.SLOT_MEMORY)
        limits = [limit for limit in (None if own is None else own.bytes, self._memory_limit) if limit]
        return MemoryBudget(min(limits), slot, tasks) if limits else None

    def _execute(self, executor: TaskExecutor, gateway: _Gateway, slot: int) -> None:
        try:
            executor.run()
        except ConnectionError:
            pass  # the JobMaster is gone: no receiver is left
        except Exception as error:  # noqa: BLE001 - sent to the JobMaster, not to Spark
            try:
                # when a job is cancelled, a peer that is gone may be noticed before the cancellation
                failure, accumulators = describe_failure(error), executor.accumulators()
                gateway.send(messages.SlotFailed(self._attempt, slot, failure, accumulators))
            except ConnectionError:
                pass


@dataclass(frozen=True)
class _Place:
    """Where a slot runs: the address its peers reach it at, and the executor that started its process."""

    host: str
    executor_id: str
    task_manager: str

    @classmethod
    def of(cls, address: str, *, local: bool) -> _Place:
        """The place that Spark gives an address to. That of an embedded Spark is its driver's."""
        host, _, port = address.rpartition(":")
        if local:
            return cls("127.0.0.1", "driver", embedded_task_manager_id(int(port)))
        executor_id = executor_id_of_worker()
        return cls(host, executor_id, executor_task_manager_id(host, executor_id))


class _Gateway:
    """The slot's connection to its JobMaster: printed output is sent before any message that may end the job."""

    def __init__(self, control: ControlConnection):
        self._control = control
        self.output: UserOutput | None = None

    def send(self, message: messages.SlotMessage) -> None:
        if self.output is not None and isinstance(message, _FLUSHING):
            self.output.flush(end=not isinstance(message, messages.TaskStateChanged))
        self._control.send(message)
