"""Checkpointing options, and what they forbid."""

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.checkpoints.settings import CheckpointRetention, CheckpointSettings

OPTIONS = {
    "interval": "2 s",
    "timeout": "30 s",
    "min-pause": "500 ms",
    "max-concurrent-checkpoints": "3",
    "tolerable-failed-checkpoints": "4",
    "mode": "AT_LEAST_ONCE",
    "externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "num-retained": "5",
    "incremental": "false",
    "checkpoints-after-tasks-finish": "false",
    "dir": "/ckp",
    "savepoint-dir": "/sp",
    "aligned-checkpoint-timeout": "1 s",
}


def configuration(**values):
    config = Configuration()
    for key, value in values.items():
        config.set_string(f"execution.checkpointing.{key}", value)
    return config


def test_all_options_are_read():
    settings = CheckpointSettings.from_configuration(configuration(**OPTIONS))
    assert settings == CheckpointSettings(
        interval=2000,
        timeout=30_000,
        min_pause=500,
        max_concurrent=3,
        tolerable_failures=4,
        exactly_once=False,
        unaligned=False,
        aligned_timeout=1000,
        retention=CheckpointRetention.RETAIN_ON_CANCELLATION,
        num_retained=5,
        incremental=False,
        after_tasks_finish=False,
        directory="/ckp",
        savepoint_directory="/sp",
    )


def test_without_options_there_are_no_periodic_checkpoints():
    settings = CheckpointSettings.from_configuration(Configuration())
    assert settings.interval is None
    assert settings.period is None
    assert settings.retention is CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"interval": "1 ms"}, "interval must be at least 10"),
        ({"timeout": "1 ms"}, "timeout must be at least 10"),
        ({"max-concurrent-checkpoints": "0"}, "max-concurrent-checkpoints must be at least 1"),
        ({"num-retained": "0"}, "num-retained must be at least 1"),
        ({"tolerable-failed-checkpoints": "-1"}, "tolerable-failed-checkpoints must be at least 0"),
        ({"unaligned.enabled": "true", "mode": "AT_LEAST_ONCE"}, "EXACTLY_ONCE"),
        ({"unaligned.enabled": "true", "max-concurrent-checkpoints": "2"}, "cannot overlap"),
    ],
)
def test_what_makes_no_sense_is_refused(values, expected):
    with pytest.raises(InvalidProgramError) as error:
        CheckpointSettings.from_configuration(configuration(**values))
    assert expected in error.value.message
