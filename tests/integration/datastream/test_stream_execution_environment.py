"""Executing programs through the executor seam, and the environment's settings."""

import json
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.job_client import JobClient
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.common.time import Duration
from firesteel.common.typeinfo import Types
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    HashMapStateBackend,
    PredefinedOptions,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from firesteel.datastream.data_stream import CloseableIterator


class FakeJob:
    """A job that ends when told to, or at once; collects what it was given."""

    def __init__(self, results=(), error=None, running=False, interrupt=False):
        self.results = list(results)
        self.channels = []
        self.cancelled = False
        self.future = Future()
        self.interrupt = interrupt
        if error is not None:
            self.future.set_exception(error)
        elif not running:
            self.future.set_result("finished")

    def job_id(self):
        return JobID()

    def status(self):
        return JobStatus.RUNNING

    def cancel(self):
        self.cancelled = True
        if not self.future.done():
            self.future.set_exception(RuntimeError("cancelled"))

    def result_future(self):
        return InterruptedOnce(self.future) if self.interrupt else self.future

    def accumulators(self):
        return {}

    def collect_iterator(self, channel):
        self.channels.append(channel)
        return iter(self.results)


class InterruptedOnce(Future):
    """Ctrl-C while the first caller waits."""

    def __init__(self, future):
        super().__init__()
        self._wrapped = future
        self._interrupted = False

    def done(self):
        return self._wrapped.done()

    def result(self, timeout=None):
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt
        return self._wrapped.result(0)  # whoever does not cancel first must not hang the test


class FakeExecutor:
    def __init__(self, job):
        self.job = job
        self.job_graphs = []
        self.configurations = []

    def execute(self, job_graph, configuration):
        self.job_graphs.append(job_graph)
        self.configurations.append(configuration)
        return JobClient(self.job)


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def run_with(env, job):
    env._executor = FakeExecutor(job)
    return env._executor


def node_specs(job_graph):
    return [node.spec for node in job_graph.nodes()]


def test_execute_hands_a_job_graph_to_the_executor(env):
    executor = run_with(env, FakeJob())
    env.from_collection([1]).map(str).print()
    assert env.execute("my job") == "finished"
    (job_graph,) = executor.job_graphs
    assert job_graph.job_name == "my job"
    assert [vertex.name for vertex in job_graph.vertices] == [
        "Source: Collection Source -> Map -> Sink: Print to Std. Out"
    ]


@pytest.mark.parametrize(
    ("configured", "given", "expected"),
    [(None, None, "Flink Streaming Job"), ("conf", None, "conf"), ("conf", "given", "given"), (None, "given", "given")],
)
def test_job_names(configured, given, expected):
    configuration = Configuration()
    if configured:
        configuration.set_string("pipeline.name", configured)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    executor = run_with(env, FakeJob())
    env.from_collection([1]).print()
    env.execute(given)
    assert executor.job_graphs[0].job_name == expected


def test_execute_without_operators(env):
    env.from_collection([1])
    for call in (env.execute, env.execute_async, env.get_execution_plan):
        with pytest.raises(InvalidProgramError, match="No operators defined in streaming topology"):
            call()


def test_execute_without_a_sink(env):
    env.from_collection([1]).map(str)
    with pytest.raises(InvalidProgramError) as refused:
        env.execute()
    assert "no sink" in refused.value.message
    assert "print()" in refused.value.hint


def test_execute_twice(env):
    run_with(env, FakeJob())
    env.from_collection([1]).print()
    env.execute()
    with pytest.raises(InvalidProgramError) as refused:
        env.execute()
    assert "No operators defined in streaming topology" in refused.value.message
    assert "executed already" in refused.value.hint


def test_a_program_that_cannot_be_built_stays(env):
    executor = run_with(env, FakeJob())
    stream = env.from_collection([1]).map(str).uid("same")
    stream.map(str).uid("same").print()
    with pytest.raises(InvalidProgramError, match="uid 'same'"):
        env.execute()
    assert executor.job_graphs == []
    assert env._transformations


def test_later_settings_do_not_reach_a_running_job(env):
    executor = run_with(env, FakeJob())
    env.from_collection([1]).print()
    env.execute_async()
    env.set_parallelism(7)
    assert "parallelism.default" not in executor.configurations[0].key_set()


def test_a_failed_job_raises(env):
    run_with(env, FakeJob(error=ValueError("boom")))
    env.from_collection([1]).print()
    with pytest.raises(ValueError, match="boom"):
        env.execute()


def test_ctrl_c_cancels_the_job_and_is_raised_again(env):
    job = FakeJob(running=True, interrupt=True)
    run_with(env, job)
    env.from_collection([1]).print()
    with pytest.raises(KeyboardInterrupt):
        env.execute()
    assert job.cancelled
    assert job.future.done()


def test_execute_and_collect(env):
    job = FakeJob(results=[1, 2, 3])
    executor = run_with(env, job)
    with env.from_collection([1, 2, 3]).execute_and_collect("collecting") as results:
        assert isinstance(results, CloseableIterator)
        assert list(results) == [1, 2, 3]
    assert not job.cancelled
    (job_graph,) = executor.job_graphs
    assert job_graph.job_name == "collecting"
    (sink,) = [spec.sink for spec in node_specs(job_graph) if hasattr(spec, "sink")]
    assert isinstance(sink, CollectSink)
    assert job.channels == [sink.channel]


def test_execute_and_collect_with_a_limit_cancels_the_rest(env):
    job = FakeJob(results=range(100), running=True)
    run_with(env, job)
    assert env.from_sequence(0, 99).execute_and_collect(limit=3) == [0, 1, 2]
    assert job.cancelled


def test_a_limit_above_what_there_is(env):
    run_with(env, FakeJob(results=[1]))
    assert env.from_collection([1]).execute_and_collect(limit=3) == [1]


def test_closing_results_twice_cancels_once(env):
    job = FakeJob(results=[1, 2], running=True)
    run_with(env, job)
    results = env.from_collection([1]).execute_and_collect()
    assert next(results) == 1
    results.close()
    results.close()
    assert job.cancelled
    assert list(results) == []


def test_results_can_be_closed_while_another_thread_waits_for_one(env):
    waits, over = threading.Event(), threading.Event()

    def results():
        waits.set()
        over.wait(60)
        yield 1

    job = FakeJob(results=(), running=True)
    iterator = CloseableIterator(results(), JobClient(job))
    waiting = threading.Thread(target=lambda: list(iterator))
    waiting.start()
    assert waits.wait(60)
    iterator.close()
    assert job.cancelled
    over.set()
    waiting.join(60)
    assert not waiting.is_alive()


def test_results_of_a_failed_job_end_with_its_error(env):
    run_with(env, FakeJob(results=[1], error=ValueError("boom")))
    results = env.from_collection([1]).execute_and_collect()
    assert next(results) == 1
    with pytest.raises(ValueError, match="boom"):
        next(results)


def test_execution_plan_leaves_the_program_as_it_is(env):
    env.set_parallelism(2)
    env.from_sequence(1, 5).key_by(lambda x: x).sum().print()
    plan = json.loads(env.get_execution_plan())
    assert plan == json.loads(env.get_execution_plan())
    assert [node["type"] for node in plan["nodes"]] == ["Source: Sequence Source", "Reduce", "Sink: Print to Std. Out"]
    assert [node["parallelism"] for node in plan["nodes"]] == [2, 2, 2]
    assert plan["nodes"][1]["predecessors"][0]["ship_strategy"] == "HASH"


def test_settings(env):
    assert env.get_parallelism() == 1
    assert env.get_max_parallelism() == -1
    assert env.set_parallelism(3).set_max_parallelism(9).get_parallelism() == 3
    assert env.get_max_parallelism() == 9
    assert env.get_config().get_parallelism() == 3
    assert env.get_buffer_timeout() == 100
    assert env.set_buffer_timeout(0).get_buffer_timeout() == 0
    assert env.set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert env.is_chaining_enabled()
    assert not env.disable_operator_chaining().is_chaining_enabled()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert env.get_configuration().get_string("execution.runtime-mode", "") == "AUTOMATIC"
    env.configure(Configuration().set_string("spark.master", "local[3]"))
    assert env.get_configuration().get_string("spark.master", "") == "local[3]"
    assert env.get_default_savepoint_directory() is None
    assert env.set_default_savepoint_directory("/tmp/s").get_default_savepoint_directory() == "/tmp/s"


def test_the_given_configuration_is_copied():
    configuration = Configuration().set_integer("parallelism.default", 5)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(6)
    assert configuration.get_integer("parallelism.default", 0) == 5


def test_checkpoint_settings(env):
    config = env.get_checkpoint_config()
    assert not config.is_checkpointing_enabled()
    assert env.get_checkpoint_interval() == -1
    env.enable_checkpointing(1000, CheckpointingMode.AT_LEAST_ONCE)
    assert config.is_checkpointing_enabled()
    assert (env.get_checkpoint_interval(), env.get_checkpointing_mode()) == (1000, CheckpointingMode.AT_LEAST_ONCE)
    config.set_checkpoint_timeout(5000).set_min_pause_between_checkpoints(10).set_max_concurrent_checkpoints(2)
    assert config.get_checkpoint_timeout() == 5000
    assert config.get_min_pause_between_checkpoints() == 10
    assert config.get_max_concurrent_checkpoints() == 2
    assert config.is_fail_on_checkpointing_errors()
    assert not config.set_fail_on_checkpointing_errors(False).is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    assert config.is_externalized_checkpoints_enabled()
    config.enable_unaligned_checkpoints().set_aligned_checkpoint_timeout(Duration.of_seconds(1))
    assert env.is_unaligned_checkpoints_enabled()
    assert config.get_alignment_timeout() == Duration.of_seconds(1)
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    assert config.set_force_unaligned_checkpoints().is_force_unaligned_checkpoints()


def test_state_backends_are_configuration(env):
    env.configure(HashMapStateBackend().to_configuration())
    assert env.get_configuration().get_string("state.backend.type", "") == "hashmap"
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths("/a", "/b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    configuration = backend.to_configuration()
    assert configuration.get_string("state.backend.type", "") == "rocksdb"
    assert configuration.get_boolean("execution.checkpointing.incremental", False)
    assert configuration.get_string("state.backend.rocksdb.localdir", "") == "/a,/b"
    assert backend.is_incremental_checkpoints_enabled()


def test_slot_sharing_groups_may_be_registered_before_or_after(env):
    group = SlotSharingGroup.builder("g").set_cpu_cores(2).set_task_heap_memory_mb(10).build()
    executor = run_with(env, FakeJob())
    env.from_collection([1]).map(str).slot_sharing_group("g").print()
    env.register_slot_sharing_group(group)
    env.execute()
    assert executor.job_graphs[0].slot_resources == {"g": group.resource_profile()}


def test_sources(env, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\n")
    assert env.read_text_file(str(path)).get_type() == Types.STRING()
    assert env.from_sequence(1, 3).get_type() == Types.LONG()
    for wrong in (lambda: env.from_source([1], None, "x"), lambda: env.from_source("x", "y", "z")):
        with pytest.raises(TypeError, match="from_source needs"):
            wrong()


def test_importing_the_api_does_not_import_spark():
    program = "import firesteel.datastream, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
