"""REST endpoint: log of a job's functions."""

from __future__ import annotations

from firesteel.rest.endpoint import Endpoint, Parameter, Text

__all__ = ["ENDPOINTS"]

JOB_LOG = Endpoint(
    "GET",
    "/jobs/:jobid/log",
    "Returns the last log lines of the functions of a job, up to 1 MB. The files taskmanager.log have all of them.",
    Text,
    query=(
        Parameter("level", "Minimum level of the lines: DEBUG, INFO, WARNING, ERROR or CRITICAL.", str, "DEBUG"),
        Parameter("task", "Text that the name of the task contains, such as Map or (1/2).", str, ""),
    ),
    errors={400: "The level does not exist.", 404: "The job does not exist."},
    is_ours=True,
)

ENDPOINTS = (JOB_LOG,)
