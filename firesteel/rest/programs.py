"""Programs that are kept on the cluster, to be run from its web pages: what Flink has jars for."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Access, Endpoint, Parameter
from firesteel.rest.submission import Empty

__all__ = [
    "DELETE_PROGRAM",
    "ENDPOINTS",
    "PLAN_PROGRAM",
    "PLAN_PROGRAM_GET",
    "PROGRAMS",
    "RUN_PROGRAM",
    "UPLOAD_PROGRAM",
    "ProgramEntry",
    "ProgramFile",
    "ProgramList",
    "ProgramPlan",
    "ProgramRequest",
    "ProgramRun",
    "ProgramUploaded",
]

_TAG = "programs"
_BAD = {
    400: "There is no such program; it ends, fails, or takes too long before it executes a job; or an argument is "
    "not what it should be.",
    403: "web.submit.enable is off.",
}


class ProgramEntry(msgspec.Struct):
    """What a program begins with."""

    name: str
    description: str | None = None


class ProgramFile(msgspec.Struct):
    """A program that is kept."""

    id: str
    name: str
    uploaded: int
    """When, in epoch milliseconds."""
    entry: list[ProgramEntry]


class ProgramList(msgspec.Struct):
    """All programs that are kept, the newest first."""

    address: str
    files: list[ProgramFile]


class ProgramUploaded(msgspec.Struct):
    """Where a program is kept; its id is the last part."""

    filename: str
    status: str = "success"


class ProgramRequest(msgspec.Struct, rename="camel"):
    """How to run a program. Each can be a query parameter as well; what is here wins."""

    entry_class: str | None = None
    """The Python file of a zip archive that is run; by default __main__.py, or the only one at its top."""
    program_args: str | None = None
    """Arguments, as in a shell."""
    program_args_list: list[str] | None = None
    """The same, one by one."""
    parallelism: int | None = None
    job_id: str | None = None
    allow_non_restored_state: bool | None = None
    savepoint_path: str | None = None
    claim_mode: str | None = None
    restore_mode: str | None = None
    """The old name of the claim mode."""
    flink_configuration: dict[str, str] | None = None


class ProgramRun(msgspec.Struct):
    """The job that a program has submitted."""

    jobid: str


class ProgramPlan(msgspec.Struct):
    """The plan of the job that a program would submit."""

    plan: dict[str, Any]


_PARAMETERS = (
    Parameter("entry-class", "The Python file of a zip archive that is run."),
    Parameter("program-args", "Arguments, as in a shell."),
    Parameter("programArg", "Arguments, one by one.", is_list=True),
    Parameter("parallelism", "The default parallelism.", type=int),
)
_RUN_PARAMETERS = (
    *_PARAMETERS,
    Parameter("savepointPath", "The savepoint or checkpoint to start from."),
    Parameter("allowNonRestoredState", "Whether state may be dropped that no operator asks for.", type=bool),
)

UPLOAD_PROGRAM: Endpoint[Any, ProgramUploaded] = Endpoint(
    "POST",
    "/jars/upload",
    "Keeps a program: a Python file, or a zip archive with several. The field of the form is jarfile.",
    ProgramUploaded,
    errors={400: "It is neither, or there is none.", 403: "web.submit.enable is off."},
    access=Access.CODE,
    tag=_TAG,
    is_upload=True,
)
PROGRAMS: Endpoint[Any, ProgramList] = Endpoint("GET", "/jars", "Lists the programs.", ProgramList, tag=_TAG)
DELETE_PROGRAM: Endpoint[Any, Empty] = Endpoint(
    "DELETE",
    "/jars/:jarid",
    "Deletes a program.",
    Empty,
    errors={400: "There is no such program.", 403: "web.submit.enable is off."},
    tag=_TAG,
)
RUN_PROGRAM: Endpoint[ProgramRequest, ProgramRun] = Endpoint(
    "POST",
    "/jars/:jarid/run",
    "Runs a program until it has submitted a job.",
    ProgramRun,
    request=ProgramRequest,
    query=_RUN_PARAMETERS,
    errors=_BAD,
    access=Access.CODE,
    tag=_TAG,
)
PLAN_PROGRAM: Endpoint[ProgramRequest, ProgramPlan] = Endpoint(
    "POST",
    "/jars/:jarid/plan",
    "Runs a program up to its first job, and shows the plan of that.",
    ProgramPlan,
    request=ProgramRequest,
    query=_PARAMETERS,
    errors=_BAD,
    access=Access.CODE,
    tag=_TAG,
)
PLAN_PROGRAM_GET: Endpoint[ProgramRequest, ProgramPlan] = Endpoint(
    "GET",
    "/jars/:jarid/plan",
    "The same, for those who can only GET. Runs the program, so that it takes the same rights.",
    ProgramPlan,
    request=ProgramRequest,
    query=_PARAMETERS,
    errors=_BAD,
    access=PLAN_PROGRAM.required_access,
    tag=_TAG,
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    UPLOAD_PROGRAM,
    PROGRAMS,
    DELETE_PROGRAM,
    RUN_PROGRAM,
    PLAN_PROGRAM,
    PLAN_PROGRAM_GET,
)
