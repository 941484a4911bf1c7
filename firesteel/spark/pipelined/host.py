"""AttemptHost for pipelined execution: a Spark barrier stage with one task, one Python process and one slot each."""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
from dataclasses import replace

from pyspark import InheritableThread, SparkContext

from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.config import scheduler_options
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotLost, SlotsAvailable, SlotsOffered
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.host_calls import host_failure
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import JobMasterMessage, RegisterSlot
from firesteel.runtime.network.errors import NetworkError
from firesteel.runtime.network.tls_settings import TlsSettings, open_tls
from firesteel.runtime.slot.control import ControlConnection, accept_control
from firesteel.spark.pipelined.slot_main import SlotMain
from firesteel.spark.session.failures import hint_for
from firesteel.spark.session.liveness import host_error
from firesteel.spark.session.rdds import Rdds
from firesteel.spark.session.slots import available_slots, has_fixed_slots, is_allocated_dynamically, wait_for_slots
from firesteel.spark.session.worker_environment import WorkerEnvironment

__all__ = ["SparkHost"]

_log = logging.getLogger(__name__)
_WATCH_INTERVAL_S = 1.0
_ERROR = re.compile(r"[\w.$]*(?:Error|Exception): \S")


class SparkHost:
    """Starts attempts on a SparkContext and keeps the control connections of their slots.

    ``memory_limit`` is how many bytes a slot's process may have at most; with ``tls`` all connections are encrypted;
    ``environment`` is what Python workers are started with.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        memory_limit: int | None = None,
        tls: TlsSettings | None = None,
        environment: WorkerEnvironment | None = None,
    ):
        self._context = context
        self._environment = environment or WorkerEnvironment()
        self._memory_limit = memory_limit
        self._tls_settings = tls
        self._tls = open_tls(tls)
        self._secret = os.urandom(32)
        host = context.getConf().get("spark.driver.host") or "127.0.0.1"
        bind = context.getConf().get("spark.driver.bindAddress") or host
        self._listener = socket.create_server((bind, 0), backlog=1024)
        self._address = (host, self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._slots: dict[tuple[int, int], ControlConnection] = {}
        self._connections: dict[ControlConnection, None] = {}
        self._post: Post | None = None
        self._heartbeat_timeout_s = 0.0
        self._closed = False
        self._end = threading.Event()
        self._over = -1
        """Attempts up to this one were killed, or another one has followed: they start nothing any more."""
        self._threads: list[threading.Thread] = []
        self._start_thread(self._accept, "firesteel-control-accept")

    # -- AttemptHost --------------------------------------------------------------------------------

    def start(self, attempt: Attempt, post: Post) -> None:
        """Submits the barrier stage from a thread of its own."""
        self._post = post
        self._over = max(self._over, attempt.number - 1)
        # one that is late may register meanwhile
        slots = list(self._slots.items())
        self._slots = {slot: connection for slot, connection in slots if slot[0] >= attempt.number}
        self._heartbeat_timeout_s = (
            attempt.job_graph.configuration.get(scheduler_options.HEARTBEAT_TIMEOUT).to_millis() / 1000
        )
        thread = InheritableThread(target=self._run_stage, args=(attempt, post), name="firesteel-spark-stage")
        thread.daemon = True
        self._keep(thread)
        thread.start()

    def watch_slots(self, post: Post) -> None:
        """Asks Spark every second, in a thread of its own; who holds them is the business of a QueuedHost."""
        self._start_thread(self._watch_slots, "firesteel-slot-inventory", post)

    def slots_left(self) -> int | None:
        """Returns how many slots Spark has; no limit if Spark starts executors on demand."""
        return None if is_allocated_dynamically(self._context) else available_slots(self._context)

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        """Sends over the slot's control connection."""
        connection = self._slots.get((attempt, slot))
        if connection is not None:
            try:
                connection.send(message)
            except ConnectionError:
                pass  # its receiving thread reports SlotLost

    def kill(self, attempt: int, reason: str) -> None:
        """Has Spark end the stage and its Python workers."""
        self._over = max(self._over, attempt)
        self._context.cancelJobGroup(self._group(attempt))

    def close(self) -> None:
        """Closes every socket and waits for the threads."""
        self._closed = True
        self._end.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # never connected: shutdown only wakes the accept
        self._listener.close()
        with self._lock:
            connections, threads = list(self._connections), list(self._threads)
        for connection in connections:
            connection.close()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(10.0)
        self._environment.release()

    # -- the stage ----------------------------------------------------------------------------------

    def _is_over(self, attempt: int) -> bool:
        return self._closed or attempt <= self._over

    def _group(self, attempt: int) -> str:
        return f"firesteel-{id(self)}-{attempt}"

    def _run_stage(self, attempt: Attempt, post: Post) -> None:
        failure: TaskFailure | None = None
        try:
            wait_for_slots(
                self._context,
                attempt.slots,
                lambda available: post(SlotsOffered(attempt.number, available)),
                lambda: self._is_over(attempt.number),
            )
            self._environment.prepare()
            if not self._is_over(attempt.number):
                name = f"{attempt.job_graph.job_name} (attempt {attempt.number})"
                self._context.setJobGroup(self._group(attempt.number), name, interruptOnCancel=True)
                main = SlotMain(
                    attempt.serialized_job,
                    attempt.number,
                    attempt.slots,
                    self._address,
                    self._secret,
                    local=has_fixed_slots(self._context),
                    memory_limit=self._memory_limit,
                    tls=self._tls_settings,
                )
                self._run_slots(main, attempt.slots)
        except BaseException as error:  # noqa: BLE001 - any error of Spark is passed on
            lost = host_error(self._context, error)
            failure = _spark_failure(error) if lost is None else host_failure(lost)
        post(AttemptEnded(attempt.number, failure))

    def _run_slots(self, main: SlotMain, slots: int) -> None:
        """Runs the barrier stage; returns when all slots have ended."""
        rdds = Rdds.of(self._context)
        stage, broadcast = rdds.shipped(rdds.empty(slots), main, self._environment, barrier=True)
        try:
            rdds.collect(stage)
        finally:
            if broadcast is not None:
                broadcast.destroy()

    def _watch_slots(self, post: Post) -> None:
        known: int | None = None
        while not self._end.is_set():
            try:
                slots = available_slots(self._context)
            except Exception as error:  # noqa: BLE001 - Spark may answer the next time
                _log.debug("The number of slots could not be determined: %s", error)
            else:
                if slots != known:
                    known = slots
                    post(SlotsAvailable(slots))
            self._end.wait(_WATCH_INTERVAL_S)

    # -- control connections ------------------------------------------------------------------------

    def _start_thread(self, target: object, name: str, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)  # type: ignore[arg-type]
        self._keep(thread)
        thread.start()

    def _keep(self, thread: threading.Thread) -> None:
        """Remembers a thread that is about to start, and forgets those that have ended."""
        with self._lock:
            self._threads = [each for each in self._threads if each.is_alive() or each.ident is None]
            self._threads.append(thread)

    def _accept(self) -> None:
        while not self._closed:
            try:
                sock, _address = self._listener.accept()
            except OSError:
                return
            self._start_thread(self._welcome, "firesteel-control-handshake", sock)

    def _welcome(self, sock: socket.socket) -> None:
        """Authenticates one connection; a stranger is turned away without having been listened to."""
        try:
            connection = accept_control(sock, self._secret, self._tls)
        except (OSError, NetworkError):
            return
        with self._lock:
            if self._closed:
                connection.close()
                return
            self._connections[connection] = None
        _Slot(self, connection).start()

    def registered(self, attempt: int, slot: int, connection: ControlConnection) -> None:
        self._slots[attempt, slot] = connection
        connection.limit_silence(self._heartbeat_timeout_s)

    def post(self, event: MessageReceived | SlotLost) -> None:
        """Hands an event to the JobMaster."""
        if self._post is not None:
            self._post(event)

    def forget(self, connection: ControlConnection) -> None:
        """A connection has ended from the other side."""
        with self._lock:
            self._connections.pop(connection, None)
        connection.close()


class _Slot:
    """Passes the messages of one control connection to the JobMaster as events of its slot."""

    def __init__(self, host: SparkHost, connection: ControlConnection):
        self._host = host
        self._connection = connection
        self._identity: tuple[int, int] | None = None

    def start(self) -> None:
        self._connection.start(
            self._on_message, self._on_lost, f"firesteel-control-slot-{self._connection.peer_id - 1}"
        )

    def _on_message(self, message: object) -> None:
        if isinstance(message, RegisterSlot):
            self._identity = (message.attempt, message.slot_index)
            self._host.registered(message.attempt, message.slot_index, self._connection)
        if self._identity is not None:
            self._host.post(MessageReceived(self._identity[1], message))  # type: ignore[arg-type]

    def _on_lost(self, reason: str) -> None:
        self._host.forget(self._connection)
        if self._identity is not None:
            self._host.post(SlotLost(*self._identity, reason))


def _spark_failure(error: BaseException) -> TaskFailure:
    """Spark's account, cut to what a user can read; the whole of it stays in the traceback."""
    failure = describe_failure(error)
    if isinstance(error, FiresteelError):
        return replace(failure, cause=error)
    if failure.error_type == "Py4JJavaError" or "SparkException" in failure.message:
        # the failure's own message is cut, perhaps before the worker's error
        reason = _reason(str(error))
        return TaskFailure(reason, error_type="SparkException", hint=hint_for(reason), traceback=failure.traceback)
    return failure


def _reason(text: str) -> str:
    """The innermost error in Spark's text: the Python worker's own if there is one."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    errors = [line for line in lines if _ERROR.match(line) and "Job aborted due to stage failure" not in line]
    of_python = [line for line in errors if not line.startswith(("org.", "java.", "py4j."))]
    reasons = of_python[-1:] or errors[:1] or [line for line in lines if line] or [text]
    return reasons[0].removeprefix("org.apache.spark.SparkException: ")[:500]
