"""REST handlers for uploaded programs: upload, list, run and delete."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.dispatcher.programs import (
    KeptProgram,
    ProgramArguments,
    ProgramRunner,
    ProgramStore,
    UnknownProgramError,
    split_arguments,
)
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.rest.programs import (
    DELETE_PROGRAM,
    PLAN_PROGRAM,
    PLAN_PROGRAM_GET,
    PROGRAMS,
    RUN_PROGRAM,
    UPLOAD_PROGRAM,
    ProgramEntry,
    ProgramFile,
    ProgramList,
    ProgramPlan,
    ProgramRequest,
    ProgramRun,
    ProgramUploaded,
)
from firesteel.rest.submission import Empty

__all__ = ["routes"]

_FIELD = "jarfile"
_Request = RestRequest[ProgramRequest]


def routes(store: ProgramStore, runner: ProgramRunner, *, is_enabled: bool = True) -> list[Route]:
    """The routes for programs; those that change or run something refuse requests, unless they are enabled."""

    def upload(request: RestRequest[Any]) -> ProgramUploaded:
        _check(is_enabled)
        if set(request.uploads) != {_FIELD}:
            raise RestError(400, f"The form must have one file, in the field {_FIELD}; it has {len(request.uploads)}.")
        program = store.add(request.uploads[_FIELD].filename, request.uploads[_FIELD].content)
        return ProgramUploaded(str(program.path))

    def programs(request: RestRequest[Any]) -> ProgramList:
        files = [
            ProgramFile(program.id, program.name, program.uploaded_at, _entries(program)) for program in store.all()
        ]
        return ProgramList(request.base_url, files)

    def delete(request: RestRequest[Any]) -> Empty:
        _check(is_enabled)
        store.delete(request.path["jarid"])
        return Empty()

    def run(request: _Request) -> ProgramRun:
        _check(is_enabled)
        program = store.find(request.path["jarid"])
        return ProgramRun(runner.run(program, _arguments(request), request.own_url))

    def plan(request: _Request) -> ProgramPlan:
        _check(is_enabled)
        shown = runner.plan(store.find(request.path["jarid"]), _arguments(request))
        # there is no job yet, but Flink's pages need its id
        return ProgramPlan({"jid": "0" * 32, **shown.get("plan", shown)})

    return [
        Route(UPLOAD_PROGRAM, upload, blocking=True),
        Route(PROGRAMS, programs, blocking=True),
        Route(DELETE_PROGRAM, delete, blocking=True),
        Route(RUN_PROGRAM, run, blocking=True),
        Route(PLAN_PROGRAM, plan, blocking=True),
        Route(PLAN_PROGRAM_GET, plan, blocking=True),
    ]


def _check(is_enabled: bool) -> None:
    if not is_enabled:
        raise RestError(
            403, "Running programs is disabled: web.submit.enable is false.", hint="Use firesteel run -m HOST:PORT."
        )


def _entries(program: KeptProgram) -> list[ProgramEntry]:
    try:
        entry = program.entry()
    except (OSError, UnknownProgramError):
        entry = None
    return [] if entry is None else [ProgramEntry(entry)]


def _arguments(request: _Request) -> ProgramArguments:
    """The arguments from the body, else from the query."""
    body, query = request.body, request.query
    arguments = body.program_args_list
    if arguments is None and body.program_args is not None:
        arguments = split_arguments(body.program_args)
    if arguments is None:
        arguments = query.get("programArg") or split_arguments(query.get("program-args") or "")
    parallelism = body.parallelism if body.parallelism is not None else query.get("parallelism")
    if parallelism is not None and not 1 <= parallelism <= 2**15:
        raise RestError(400, f"The parallelism must be from 1 to {2**15}, not {parallelism}.")
    settings = dict(body.flink_configuration or {})
    claim_mode = body.claim_mode or body.restore_mode
    if claim_mode is not None:
        settings["execution.state-recovery.claim-mode"] = claim_mode
    allow = body.allow_non_restored_state
    return ProgramArguments(
        arguments,
        body.entry_class or query.get("entry-class"),
        parallelism,
        body.savepoint_path or query.get("savepointPath"),
        bool(allow if allow is not None else query.get("allowNonRestoredState")),
        body.job_id,
        settings,
    )
