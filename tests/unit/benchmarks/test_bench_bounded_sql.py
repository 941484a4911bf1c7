"""The figures of the benchmark of bounded queries."""

from __future__ import annotations

from benchmarks.bounded_sql.__main__ import figures_of, table_of

COUNTS = {"/few": 100_000, "/many": 300_000}


def _run(data: str, seconds: float, query: str = "q0") -> dict[str, object]:
    return {"query": query, "data": data, "seconds": seconds}


def test_the_shortest_time_counts_and_start_up_is_left_out():
    runs = [_run("/few", 1.5), _run("/few", 1.0), _run("/many", 2.0), _run("/many", 3.0), _run("/many", 0.1, "q1")]
    assert figures_of(runs, "q0", COUNTS) == {"seconds": 2.0, "wall": 150_000, "steady": 200_000}


def test_a_query_that_a_system_cannot_read_has_no_figures():
    assert figures_of([_run("/few", 1.0)], "q0", COUNTS) is None


def test_the_table_has_ratios_to_each_peer_and_their_means():
    ours, slow, fast = ({"wall": rate, "steady": rate} for rate in (4e5, 1e5, 8e5))
    figures = [
        {"query": "q0", "firesteel": ours, "flink": slow, "spark": fast},
        {"query": "q5", "firesteel": ours, "flink": ours, "spark": None},
    ]
    _head, _line, first, second, mean = table_of(figures, ["firesteel", "flink", "spark"]).splitlines()
    assert first.endswith("| 4.00 | 4.00 | 0.50 | 0.50 |")
    assert second.endswith("|  |  | 1.00 | 1.00 |  |  |")
    assert mean.endswith("| **2.00** | **2.00** | **0.50** | **0.50** |")
