"""Configuration keys that no option has: most of them are misspelt."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from functools import cache

from firesteel.common.errors import FiresteelWarning, InvalidProgramError
from firesteel.config import options, pipeline_options
from firesteel.config.configuration import Configuration

__all__ = ["check_keys", "describe_unknown", "unknown_keys"]

_OTHERS = ("spark.", "$internal.", "testing.", "sql-client.")
"""How keys begin that are Spark's, or that clients and tests set for themselves."""
_MIN_SIMILARITY = 0.8
"""How similar a key must be to be suggested."""


@cache
def _known() -> frozenset[str]:
    return frozenset(key for option in options.all_options() for key in (option.key, *option.fallback_keys))


def unknown_keys(keys: Iterable[str]) -> list[str]:
    """Returns the keys that are neither an option's nor Spark's, sorted.

    >>> unknown_keys(["parallelism.default", "parallelism.defualt", "spark.executor.memory"])
    ['parallelism.defualt']
    """
    return sorted(key for key in keys if key not in _known() and not key.startswith(_OTHERS))


def describe_unknown(key: str) -> str:
    """Describes an unknown key, with the nearest known one if there is any.

    >>> describe_unknown("execution.checkpointing.intervall")
    "'execution.checkpointing.intervall' is not a configuration key. Did you mean 'execution.checkpointing.interval'?"
    """
    nearest = difflib.get_close_matches(key, _known(), 1, _MIN_SIMILARITY)
    suggestion = f" Did you mean '{nearest[0]}'?" if nearest else " It has no effect."
    return f"'{key}' is not a configuration key.{suggestion}"


def check_keys(configuration: Configuration) -> None:
    """Warns of unknown keys, or raises an error with ``pipeline.strict-config``."""
    unknown = unknown_keys(configuration.key_set())
    strict = configuration.get(pipeline_options.STRICT_CONFIG)
    if unknown and strict:
        raise InvalidProgramError(
            " ".join(describe_unknown(key) for key in unknown),
            hint="With pipeline.strict-config, unknown keys are an error. Set user-defined parameters with "
            "pipeline.global-job-parameters.",
        )
    for key in unknown:
        warnings.warn(describe_unknown(key), FiresteelWarning, stacklevel=4)
