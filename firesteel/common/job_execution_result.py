"""JobExecutionResult: the result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.api.notebook import html_table
from firesteel.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The id, run time and accumulators of a job that finished."""

    def __init__(self, job_id: JobID, net_runtime: int, accumulators: Mapping[str, Any] | None = None):
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """The id the job ran under."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """How long the job ran, in milliseconds, from its start to its end."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of one accumulator, None if the job has none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Every accumulator's value by name."""
        return dict(self._accumulators)

    def __str__(self) -> str:
        lines = [f"Job {self._job_id} finished.", f"Runtime: {self._net_runtime} ms"]
        if self._accumulators:
            lines.append("Accumulators:")
            lines += [f"- {name}: {value}" for name, value in self._accumulators.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<JobExecutionResult of job {self._job_id}, {self._net_runtime} ms>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("Job id", self._job_id), ("Runtime", f"{self._net_runtime} ms")]
        return html_table("Job finished", [*rows, *self._accumulators.items()])
