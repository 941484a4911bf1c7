"""The SparkContext a job runs on: the caller's own if there is one, else an embedded one with quiet logging."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

import firesteel
from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.config.redaction import is_sensitive
from firesteel.spark.session.java import require_java
from firesteel.spark.session.liveness import spark_lives

__all__ = [
    "SparkStartError",
    "get_spark_context",
    "is_single_host",
    "spark_log",
    "start_cluster_context",
    "stop_spark_context",
]

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""

_ROTATING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 4
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss,SSS}} %-5p %c{{1}}: %m%n%ex
"""
"""For a Spark that runs for months."""

MIN_SLOTS = 4
"""How many slots the embedded Spark of a cluster has at least: small jobs are to fit beside each other."""
_PREFIX = "firesteel-spark-"
_MAX_SOCKET_DIRECTORY = 60
"""Spark refuses longer ones: the path of a socket has room for about a hundred characters."""
_COMPLAINT = re.compile(r"\b[\w.$]*(?:Exception|Error): (?P<message>.+)")
_UNSPECIFIC = ("WARN", "Picked up ", "Using ", "Error occurred during ", "Error: Could not create ", "Error: A ")
_WORKER_DAEMON = "firesteel.spark.session.worker_daemon"
_lock = threading.Lock()
_own: tuple[SparkContext, Path] | None = None


class SparkStartError(FiresteelError):
    """The embedded Spark, or the connection to a cluster, could not be started."""

    is_transient = True


def get_spark_context(
    configuration: Configuration,
    slots: int,
    in_use: Callable[[], bool] = lambda: False,
    meanwhile: Callable[[], None] = lambda: None,
) -> SparkContext:
    """The active SparkContext, or a new one with the configuration's ``spark.*`` keys.

    Under spark-submit its own master counts. Else, without ``spark.master``, Spark is embedded, with as many slots as
    there are cores, or as the job needs if those are more: what Flink's MiniCluster does for a local program. One that
    is too small is replaced, but not while it is in use; one whose JVM has ended is replaced in any case. ``meanwhile``
    is called while a JVM is started, if one is.
    """
    global _own
    with _lock:
        active = SparkContext._active_spark_context
        settings = {key: value for key, value in configuration.to_dict().items() if key.startswith("spark.")}
        if active is not None and _own is not None and active is _own[0] and not spark_lives(active):
            _stop()
            active = None
        if active is not None and _own is not None and active is _own[0]:
            master = settings.get("spark.master")
            is_in_use = in_use()
            if (master is None and (is_in_use or _slots_of(active) >= slots)) or master == active.master:
                return active
            if is_in_use:
                raise SparkStartError(
                    f"This process has jobs running on {active.master}, so it cannot run one on {master}.",
                    hint="A process has one SparkContext: wait until those jobs have ended, or use another process.",
                )
            _stop()
        elif active is not None:
            _use_this_python(active)
            return active
        require_java()
        submitted = os.environ.get("PYSPARK_GATEWAY_PORT") is not None  # by spark-submit, which knows its master
        if not submitted:
            settings.setdefault("spark.master", f"local[{max(os.cpu_count() or 1, slots)}]")
        _own = _create(settings, meanwhile=meanwhile)
        return _own[0]


def start_cluster_context(
    configuration: Configuration,
    slots: int | None = None,
    *,
    log: Path | None = None,
    python_path: Sequence[str] = (),
) -> SparkContext:
    """The SparkContext of a JobManager, which is the only one its process ever has.

    Without ``spark.master`` Spark is embedded, with ``slots`` slots, else with taskmanager.numberOfTaskSlots, else with
    one per core and at least 4. Slots can import what is installed, what jobs bring along, and from the directories of
    ``python_path``; not from where this process was started. ``log`` is the file Spark writes its log to.
    `stop_spark_context` ends it; so does the end of this process, however it comes.
    """
    global _own
    with _lock:
        if SparkContext._active_spark_context is not None:
            raise SparkStartError("This process has a SparkContext already, so it cannot be a JobManager.")
        require_java()
        settings = {key: value for key, value in configuration.to_dict().items() if key.startswith("spark.")}
        if "spark.master" not in settings:
            count = slots or configuration.get(cluster_options.TASK_SLOTS) or max(MIN_SLOTS, os.cpu_count() or 1)
            settings["spark.master"] = f"local[{count}]"
        _own = _create(settings, log=log, python_path=[_installed_at(), *python_path])
        return _own[0]


def is_single_host(configuration: Configuration) -> bool:
    """Whether all slots will run on this machine, as far as is known before Spark is started."""
    active = SparkContext._active_spark_context
    if active is not None:
        master = active.master
    elif os.environ.get("PYSPARK_GATEWAY_PORT") is not None:
        return False  # spark-submit alone knows its master
    else:
        master = configuration.to_dict().get("spark.master", "local")
    return bool(master.startswith("local")) and not master.startswith("local-cluster")


def stop_spark_context() -> None:
    """Stops the embedded Spark, if there is one."""
    with _lock:
        _stop()


def spark_log() -> Path | None:
    """Where the embedded Spark logs to."""
    return None if _own is None else _own[1] / "spark.log"


def _use_this_python(context: SparkContext) -> None:
    """Has Python workers on this machine run with this interpreter, unless the program has chosen another one.

    PySpark's own default is the ``python3`` of the path. In a virtual environment that is not activated that is another
    one, which cannot import the program's packages.
    """
    chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if not chosen and context.master.startswith("local"):
        context.pythonExec = sys.executable


def _slots_of(context: SparkContext) -> int:
    return int(context.defaultParallelism)


def _create(
    settings: dict[str, str],
    *,
    log: Path | None = None,
    python_path: Sequence[str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[SparkContext, Path]:
    _remove_left_behind()
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        log4j = directory / "log4j2.properties"
        log4j.write_text(_LOG4J.format(log=directory / "spark.log") if log is None else _ROTATING.format(log=log))
        conf = SparkConf()
        conf.set("spark.app.name", "firesteel")
        conf.set("spark.ui.enabled", "false")
        conf.set("spark.ui.showConsoleProgress", "false")
        conf.set("spark.local.dir", str(directory))
        conf.set("spark.sql.warehouse.dir", str(directory / "warehouse"))
        conf.set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
        # failover is the JobMaster's: Spark must not start a stage again by itself
        conf.set("spark.stage.maxConsecutiveAttempts", "1")
        conf.set("spark.task.maxFailures", "1")
        master = settings.get("spark.master", conf.get("spark.master", ""))
        if master.startswith("local"):
            conf.set("spark.driver.host", "127.0.0.1")
            conf.set("spark.driver.bindAddress", "127.0.0.1")
            conf.set("spark.python.daemon.module", _WORKER_DAEMON)
            if len(str(directory)) <= _MAX_SOCKET_DIRECTORY:
                # between Spark and its Python workers: half of what TCP costs
                conf.set("spark.python.unix.domain.socket.enabled", "true")
                conf.set("spark.python.unix.domain.socket.dir", str(directory))
            # what the program could import its functions can too: also from beside the script, and what it added itself
            path = _program_path() if python_path is None else python_path
            conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join(path))
        for key, value in settings.items():
            conf.set(key, value)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            with _stderr_to(directory / "spark.stderr"):
                return _start(conf, meanwhile), directory
        except Exception as error:  # noqa: BLE001 - any error of Spark is passed on
            said = (directory / "spark.stderr").read_text(errors="replace")
            reason = _complaint(said) or _complaint(str(error))
            raise SparkStartError(
                f"Spark could not be started on {master}: {reason}",
                hint="Check the configuration's spark.* keys (spark.master, spark.driver.memory, …) and the Java that "
                "JAVA_HOME or the path names.",
            ) from None
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _complaint(text: str) -> str | None:
    """The error message of Java or Spark, without the class names before it and the stack after it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_UNSPECIFIC)]
    for line in lines:
        match = _COMPLAINT.search(line)
        if match is not None:
            return match["message"].strip()
    return lines[0].strip() if lines else None


def _start(conf: SparkConf, meanwhile: Callable[[], None]) -> SparkContext:
    if SparkContext._gateway is not None:
        return SparkContext(conf=conf)
    gateway = _launch_gateway(_without_secrets(conf), meanwhile)
    try:
        return SparkContext(conf=conf, gateway=gateway)
    except BaseException as error:
        text = str(error)  # an error of Java's asks the JVM, which is about to end
        _end_java(gateway)
        SparkContext._active_spark_context = None
        if not isinstance(error, Exception):
            raise
        raise RuntimeError(text) from None


def _without_secrets(conf: SparkConf) -> SparkConf:
    """What the JVM is started with, on a command line that every user of the machine can read.

    The context gets the whole configuration, over the connection to the JVM.
    """
    public = SparkConf(loadDefaults=False)
    public.setAll([(key, value) for key, value in conf.getAll() if not is_sensitive(key)])
    return public


def _launch_gateway(conf: SparkConf, meanwhile: Callable[[], None]) -> Any:
    """Starts the JVM, and does something else meanwhile; a Ctrl-C ends it again.

    Interrupted in the middle, PySpark forgets the process it has started, and that waits for ever. So it is started
    in a thread, which Ctrl-C does not reach, and ended as soon as it is known.
    """
    launched: Future[Any] = Future()

    def launch() -> None:
        try:
            launched.set_result(launch_gateway(conf))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            launched.set_exception(error)

    threading.Thread(target=launch, name="firesteel-launch-java", daemon=True).start()
    try:
        meanwhile()
        return launched.result()
    except BaseException:
        if not launched.done() or launched.exception() is None:
            _end_java(launched.result())
        raise


def _end_java(gateway: Any) -> None:
    """Ends the JVM, which would live as long as this process, and with it its threads and sockets."""
    process = getattr(gateway, "proc", None)
    if process is not None:
        with suppress(OSError):  # it may be gone
            process.stdin.close()
        process.wait(timeout=30)
    SparkContext._gateway = None
    SparkContext._jvm = None


def _program_path() -> list[str]:
    """The module search path without what every interpreter has by itself."""
    own = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return [entry for entry in sys.path if Path(entry).is_dir() and entry and not entry.startswith(own)]


def _installed_at() -> str:
    """Where Firesteel is imported from, which slots must be able to, too."""
    return str(Path(firesteel.__file__).resolve().parents[1])


def _remove_left_behind() -> None:
    """Removes the directories of processes that were killed before they could."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        # one of this process is from before it restarted itself
        if pid.isdigit() and (int(pid) == os.getpid() or not _is_alive(int(pid))):
            shutil.rmtree(directory, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _stop() -> None:
    global _own
    if _own is None:
        return
    (context, directory), _own = _own, None
    gateway = context._gateway
    try:
        context.stop()
    except OSError:
        context.stop()  # the JVM no longer answers: the second time the JVM is not asked
    try:
        if gateway is not None:
            with suppress(Exception):  # the JVM may be gone
                gateway.shutdown()
            _end_java(gateway)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """While the JVM is started its standard error, which it keeps, is a file: the terminal is the user's."""
    saved = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        sys.stderr.flush()
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


atexit.register(stop_spark_context)
