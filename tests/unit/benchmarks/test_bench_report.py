from __future__ import annotations

import json

import pytest

from benchmarks.board import BUCKETS, Board, bucket_of, upper_ms
from benchmarks.cases import CASES, SYSTEMS
from benchmarks.report import (
    Figures,
    Row,
    Sample,
    bytes_per_key,
    combine,
    json_line,
    percentile_ms,
    relate,
    steady,
    steady_histogram,
    steady_rate,
    table,
)


def _ramp() -> list[Sample]:
    # 3 s of start-up without records, 5 s at 10 records/s, then 100 records/s.
    idle = [Sample(float(t), 0) for t in range(3)]
    slow = [Sample(3.0 + t, 10 * (t + 1)) for t in range(5)]
    fast = [Sample(8.0 + t, 150 + 100 * t) for t in range(10)]
    return idle + slow + fast


def test_warm_up_starts_with_the_first_record():
    kept = steady(_ramp(), warmup_s=5.0)
    assert kept[0].t == 8.0
    assert steady_rate(kept) == pytest.approx(100.0)


def test_warm_up_also_waits_for_its_records():
    kept = steady(_ramp(), warmup_s=1.0, warmup_records=500)
    assert kept[0].records == 550


def test_a_stall_lowers_the_rate():
    kept = [Sample(0.0, 100), Sample(1.0, 200), Sample(2.0, 200)]
    assert steady_rate(kept) == pytest.approx(50.0)


@pytest.mark.parametrize("samples", [[], [Sample(0.0, 0), Sample(9.0, 0)]])
def test_no_records_is_no_steady_state(samples: list[Sample]):
    assert steady(samples, warmup_s=0.0) == []


def test_one_sample_has_no_rate():
    assert steady_rate([Sample(1.0, 5)]) is None


def test_combine_takes_the_median_of_each_figure():
    repeats = [
        Figures(records_per_s=1.0, peak_rss_mb=30.0),
        Figures(records_per_s=100.0, peak_rss_mb=10.0),
        Figures(records_per_s=3.0, peak_rss_mb=20.0),
    ]
    assert combine(repeats) == Figures(records_per_s=3.0, peak_rss_mb=20.0)


def test_percentiles_forget_the_warm_up():
    slow, fast = bucket_of(1_000_000), bucket_of(1_000)
    kept = [Sample(0.0, 10, {slow: 10}), Sample(9.0, 110, {slow: 11, fast: 99})]
    histogram = steady_histogram(kept)
    assert histogram == {slow: 1, fast: 99}
    assert percentile_ms(histogram, 0.5) == pytest.approx(1.0, rel=0.05)
    assert percentile_ms(histogram, 0.99) == pytest.approx(1.0, rel=0.05)
    assert percentile_ms(histogram, 1.0) == pytest.approx(1000.0, rel=0.05)
    assert percentile_ms({}, 0.5) is None


@pytest.mark.parametrize("latency_us", [0.0, 0.5, 1.0, 7.3, 950.0, 12_345.0, 6e7])
def test_a_bucket_holds_its_latency(latency_us: float):
    upper = upper_ms(bucket_of(latency_us)) * 1000
    assert latency_us <= upper <= max(1.0, latency_us) * 1.05
    assert bucket_of(1e30) == BUCKETS - 1


def test_board_sums_its_writers(tmp_path):
    board = Board(str(tmp_path))
    first, second = board.writer(), board.writer()
    first[0], second[0] = 3, 4
    first[1 + 7] = second[1 + 7] = 2
    assert board.read() == (7, {7: 4})


def test_ratio_is_ours_over_theirs_within_a_variant():
    rows = [
        Row("latency", "firesteel", "a", Figures(p99_ms=2.0)),
        Row("latency", "bytewax", "a", Figures(p99_ms=8.0)),
        Row("latency", "firesteel", "b", Figures(p99_ms=3.0)),
        Row("latency", "bytewax", "b", Figures(p99_ms=1.0)),
        Row("latency", "pyflink-thread", "b", skipped="no"),
    ]
    assert [row.ratio for row in relate(rows, "p99_ms")] == [None, 0.25, None, 3.0, None]


def test_no_ratio_without_firesteel():
    rows = relate([Row("stateless", "bytewax", figures=Figures(records_per_s=5.0))], "records_per_s")
    assert rows[0].ratio is None


def test_bytes_per_key():
    assert bytes_per_key(100.0, 0, 101.0, 1024) == pytest.approx(1024.0)


def test_json_has_the_fields_that_apply():
    row = Row("keyed_sum", "bytewax", figures=Figures(records_per_s=12.34567, peak_rss_mb=30.0), ratio=3.5)
    assert json.loads(json_line(row)) == {
        "case": "keyed_sum",
        "system": "bytewax",
        "records_per_s": 12.3457,
        "peak_rss_mb": 30.0,
        "ratio": 3.5,
    }
    assert json.loads(json_line(Row("keyed_sum", "bytewax", skipped="no wheel"))) == {
        "case": "keyed_sum",
        "system": "bytewax",
        "skipped": "no wheel",
    }


def test_table_is_aligned():
    text = table(
        [
            Row("stateless", "firesteel", figures=Figures(records_per_s=1_234_567.0, peak_rss_mb=10.0)),
            Row("keys", "firesteel", "5M", Figures(records_per_s=10.0), bytes_per_key=321.0),
            Row("stateless", "pyflink-thread", skipped="no wheel"),
        ]
    )
    head, rule, first, second, third = text.splitlines()
    assert head.split()[:3] == ["case", "system", "records/s"]
    assert set(rule) == {"-", " "}
    end = head.index("records/s") + len("records/s")
    assert first[:end].endswith("  1,234,567")
    assert second[:end].endswith("  10")
    assert second.startswith("keys 5M")
    assert second.endswith("321 bytes per key")
    assert third.endswith("skipped: no wheel")
    assert all(line[:end].index(name) == head.index("system") for line, name in ((first, "fire"), (third, "py")))


def test_every_case_names_known_systems_and_firesteel():
    for case in CASES.values():
        assert "firesteel" in case.systems
        assert set(case.systems) <= set(SYSTEMS)
        assert len({variant.name for variant in case.variants}) == len(case.variants)
