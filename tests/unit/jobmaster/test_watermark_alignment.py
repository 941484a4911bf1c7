"""Sources of one group stay together in event time."""

from __future__ import annotations

from firesteel.jobmaster.sources.watermark_alignment import WatermarkAlignment
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.messages import ReportWatermark


def report(operator: str, watermark: int, group: str = "g", subtask: int = 0, drift: int = 10) -> ReportWatermark:
    return ReportWatermark(0, "vertex", operator, subtask, group, watermark, drift)


def test_a_source_may_be_ahead_of_the_slowest_by_the_drift() -> None:
    alignment = WatermarkAlignment()
    assert alignment.report(report("fast", 100)).max_allowed == 110
    assert alignment.report(report("slow", 20)).max_allowed == 30
    answer = alignment.report(report("fast", 100))
    assert (answer.operator_id, answer.subtask, answer.max_allowed) == ("fast", 0, 30)
    alignment.report(report("slow", 95))
    assert alignment.report(report("fast", 100)).max_allowed == 105


def test_subtasks_count_one_by_one_and_groups_do_not_mix() -> None:
    alignment = WatermarkAlignment()
    alignment.report(report("a", 50, subtask=0))
    assert alignment.report(report("a", 40, subtask=1)).max_allowed == 50
    assert alignment.report(report("b", 1000, group="other")).max_allowed == 1010


def test_who_is_idle_or_has_ended_holds_nobody_back() -> None:
    alignment = WatermarkAlignment()
    alignment.report(report("slow", MIN_TIMESTAMP))
    assert alignment.report(report("fast", 100)).max_allowed == MIN_TIMESTAMP + 10
    alignment.report(report("slow", MAX_WATERMARK))
    assert alignment.report(report("fast", 100)).max_allowed == 110
    assert alignment.report(report("fast", MAX_WATERMARK)).max_allowed == MAX_WATERMARK
