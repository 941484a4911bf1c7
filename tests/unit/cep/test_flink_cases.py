"""Recorded cases: the operator emits what flink-cep emits, in the same order.

``tests/support/cep_oracle`` has the cases, and records them anew.
"""

from __future__ import annotations

import json

import pytest

from tests.support.cep_oracle.operator_run import run_case
from tests.support.cep_oracle.record import is_same, read_recorded

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_cases(part: int) -> None:
    cases = read_recorded()[part::PARTS]
    assert len(cases) * PARTS > 3_000
    assert sum(bool(case["expected"]["emitted"]) for case in cases) > len(cases) / 3
    disagreed = [case for case in cases if not is_same(run_case(case), case["expected"])]
    assert not disagreed, "\n".join(json.dumps({**case, "ours": run_case(case)}) for case in disagreed[:3])
