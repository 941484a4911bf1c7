"""Every scenario runs here in a thread of this process, tiny: that it gives its figures, not how fast."""

from __future__ import annotations

import importlib
import json
import math
from typing import Any

import pytest

from benchmarks.runner import Run
from benchmarks.scenarios.catalogue import SCENARIOS
from benchmarks.scenarios.controlled import KeyTraffic
from benchmarks.scenarios.job import percentile
from benchmarks.scenarios.payload import Payload
from benchmarks.scenarios.report import json_line, rows_of, table
from benchmarks.scenarios.scenario import Scenario, ScenarioVariant

MEASURED_OUTSIDE = {"worker_rss_mb", "rss_mb"}
OWN = [
    pytest.param(scenario, variant, id=f"{scenario.name}-{variant.name}".replace(" ", "-"))
    for scenario in SCENARIOS.values()
    for variant in scenario.variants
    # those start a broker, or clusters, and Spark
    if variant.system == "firesteel" and not scenario.name.startswith(("kafka", "cluster"))
]


def _tiny(scenario: Scenario, variant: ScenarioVariant, scratch: str) -> dict[str, Any]:
    params = {"seconds": 1.0, **variant.params, **variant.small, "in_process": True}
    if scenario.name == "recovery":
        # a thread cannot be killed
        params["fault"] = "exception"
        params["options"] = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 s"}
    return importlib.import_module(scenario.module(variant)).run(Run(variant.system, params, scratch))


@pytest.mark.parametrize(("scenario", "variant"), OWN)
def test_a_scenario_gives_its_figures(scenario: Scenario, variant: ScenarioVariant, tmp_path):
    figures = _tiny(scenario, variant, str(tmp_path))
    wanted = {column.name for column in scenario.columns} - MEASURED_OUTSIDE
    if variant.name.endswith(" none"):
        wanted = {"records_per_s", "cpu_ns"}
    assert figures.keys() >= wanted
    assert all(math.isfinite(value) and value >= 0 for value in figures.values())
    row, *_ = rows_of(scenario, [variant], {variant.name: [figures]}, {}, {})
    fields = json.loads(json_line(row))
    assert (fields["case"], fields["variant"], fields["system"]) == (scenario.name, variant.name, "firesteel")
    assert wanted <= fields.keys()
    head, _, line = table(scenario, [row]).splitlines()
    assert head.startswith(scenario.name)
    assert line.startswith(variant.name)
    if variant.name == "unaligned":
        assert figures["unaligned"] == figures["checkpoints"]


def _rows(results: dict[str, list[dict[str, Any]]], **problems: dict[str, str]) -> list[Any]:
    scenario = SCENARIOS["checkpointing"]
    return rows_of(scenario, scenario.variants, results, problems.get("skipped", {}), problems.get("failed", {}))


def test_ratios_pair_the_runs_of_a_turn():
    results = {
        "hashmap none": [{"records_per_s": value} for value in (100.0, 10.0, 50.0)],
        "hashmap 1s": [{"records_per_s": value} for value in (90.0, 8.0, 50.0)],
    }
    ratios = {row.variant: row.ratio for row in _rows(results)}
    assert ratios == {
        "hashmap none": None,
        "hashmap 1s": pytest.approx(0.9),
        "rocksdb none": None,
        "rocksdb 1s": None,
    }


def test_repeats_count_by_median_or_worst():
    repeats = [{"records_per_s": value, "pause_max_ms": value} for value in (1.0, 2.0, 9.0)]
    row = _rows({"hashmap 1s": repeats})[1]
    assert row.figures == {"records_per_s": 2.0, "pause_max_ms": 9.0}


def test_a_failure_is_a_row_too():
    rows = _rows({}, failed={"hashmap 1s": "no room"}, skipped={"firesteel": "not here"})
    assert json.loads(json_line(rows[1]))["failed_because"] == "no room"
    assert table(SCENARIOS["checkpointing"], rows).splitlines()[3].endswith("skipped: not here; failed: no room")


def test_ratios_name_variants_and_columns_that_exist():
    for scenario in SCENARIOS.values():
        names = {variant.name for variant in scenario.variants}
        assert len(names) == len(scenario.variants)
        columns = {column.name for column in scenario.columns}
        for variant in scenario.variants:
            if variant.ratio is not None:
                assert set(variant.ratio) <= names
                assert scenario.figure in columns


@pytest.mark.parametrize("splits", [1, 2])
def test_traffic_touches_every_key_and_then_the_hot_ones(splits: int):
    traffic = KeyTraffic(keys=40, hot=4)
    fill = traffic.fill(splits)

    def emitted(begin: int, end: int) -> list[int]:
        keys = []
        for split in range(splits):
            position = begin
            while position < end:
                numbers = traffic.numbers(split, splits, position, min(3, end - position))
                keys += [number % traffic.keys for number in numbers]
                position += len(numbers)
        return sorted(keys)

    assert emitted(0, fill) == list(range(40))
    assert emitted(fill, fill + 4 // splits) == [0, 1, 2, 3]
    assert set(emitted(fill, fill + 100)) == {0, 1, 2, 3}


def test_percentiles():
    values = list(range(1, 101))
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50, 99, 100)
    assert percentile([7.0], 0.01) == 7.0
    assert percentile([], 0.5) is None


def test_payloads_differ_and_keep_their_count():
    payload = Payload(200)
    first, second = payload.make(1, 41), payload.make(2, 41)
    assert len(first) == len(second) == 200
    assert first != second
    assert payload.count(second) == 41
