"""REST endpoints: uploaded programs, the counterpart of Flink's jars."""

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
    400: "The program does not exist; it ended, failed or timed out before it executed a job; or an argument is "
    "invalid.",
    403: "web.submit.enable is false.",
}


class ProgramEntry(msgspec.Struct):
    """The entry point of a program."""

    name: str
    description: str | None = None


class ProgramFile(msgspec.Struct):
    """An uploaded program."""

    id: str
    name: str
    uploaded: int
    """Upload time, in epoch milliseconds."""
    entry: list[ProgramEntry]


class ProgramList(msgspec.Struct):
    """All uploaded programs, newest first."""

    address: str
    files: list[ProgramFile]


class ProgramUploaded(msgspec.Struct):
    """The path of an uploaded program; the last part is its id."""

    filename: str
    status: str = "success"


class ProgramRequest(msgspec.Struct, rename="camel"):
    """How to run a program. Each field can also be given as a query parameter; the body takes precedence."""

    entry_class: str | None = None
    """The Python file of a zip archive to run; default: __main__.py, or the only file at the top level."""
    program_args: str | None = None
    """Program arguments as one string, split as in a shell."""
    program_args_list: list[str] | None = None
    """Program arguments as a list."""
    parallelism: int | None = None
    job_id: str | None = None
    allow_non_restored_state: bool | None = None
    savepoint_path: str | None = None
    claim_mode: str | None = None
    restore_mode: str | None = None
    """The former name of the claim mode."""
    flink_configuration: dict[str, str] | None = None


class ProgramRun(msgspec.Struct):
    """The job submitted by a program."""

    jobid: str


class ProgramPlan(msgspec.Struct):
    """The plan of the job that a program would submit."""

    plan: dict[str, Any]


_PARAMETERS = (
    Parameter("entry-class", "The Python file of a zip archive to run."),
    Parameter("program-args", "Program arguments as one string, split as in a shell."),
    Parameter("programArg", "Program arguments as a list.", is_list=True),
    Parameter("parallelism", "The default parallelism.", type=int),
)
_RUN_PARAMETERS = (
    *_PARAMETERS,
    Parameter("savepointPath", "The savepoint or checkpoint to restore from."),
    Parameter(
        "allowNonRestoredState", "Whether state that belongs to no operator of the program is dropped.", type=bool
    ),
)

UPLOAD_PROGRAM: Endpoint[Any, ProgramUploaded] = Endpoint(
    "POST",
    "/jars/upload",
    "Uploads a program: a Python file, or a zip archive with several files. The form field is jarfile.",
    ProgramUploaded,
    errors={
        400: "The file is missing, or neither a Python file nor a zip archive.",
        403: "web.submit.enable is false.",
    },
    access=Access.CODE,
    tag=_TAG,
    is_upload=True,
)
PROGRAMS: Endpoint[Any, ProgramList] = Endpoint("GET", "/jars", "Lists the uploaded programs.", ProgramList, tag=_TAG)
DELETE_PROGRAM: Endpoint[Any, Empty] = Endpoint(
    "DELETE",
    "/jars/:jarid",
    "Deletes a program.",
    Empty,
    errors={400: "The program does not exist.", 403: "web.submit.enable is false."},
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
    "Returns the plan of the first job of a program, without running the job.",
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
    "The same as a GET request, as in Flink. It runs the program's code and requires the same authorization.",
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
