"""Configuration keys that do not exist: a warning with the nearest one, or an error."""

from __future__ import annotations

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import FiresteelWarning, InvalidProgramError
from firesteel.config.options import all_options
from firesteel.config.unknown_keys import describe_unknown, unknown_keys
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing.in_process import InProcessExecutor

MISSPELT = "execution.checkpointing.intervall"


def run(settings):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env._executor = InProcessExecutor()
    with env.from_collection([1, 2]).map(lambda x: x + 1).execute_and_collect() as results:
        return sorted(results)


def test_every_option_is_known_also_by_its_old_keys():
    assert unknown_keys(key for option in all_options() for key in (option.key, *option.fallback_keys)) == []


def test_keys_of_spark_are_spark_s():
    assert unknown_keys(["spark.executor.memory", "sparc.executor.memory"]) == ["sparc.executor.memory"]


def test_the_nearest_key_is_suggested_if_there_is_one():
    assert describe_unknown(MISSPELT).endswith("Did you mean 'execution.checkpointing.interval'?")
    assert describe_unknown("coffee.strength").endswith("It has no effect.")


def test_a_misspelt_key_is_a_warning_when_the_job_is_executed():
    with pytest.warns(FiresteelWarning, match="intervall.*Did you mean 'execution.checkpointing.interval'"):
        assert run({MISSPELT: "1 s"}) == [2, 3]


def test_a_misspelt_key_is_an_error_in_strict_configurations():
    with pytest.raises(InvalidProgramError, match=r"intervall.*Did you mean") as raised:
        run({MISSPELT: "1 s", "pipeline.strict-config": "true"})
    assert "global-job-parameters" in str(raised.value)


def test_a_strict_configuration_without_misspelt_keys_runs():
    parameters = {"pipeline.global-job-parameters": "my.own:1", "pipeline.strict-config": "true"}
    assert run(parameters) == [2, 3]
