"""Random choice of the ways to run a program."""

from __future__ import annotations

import random
from dataclasses import replace

from firesteel.testing.programs.nodes.sources import ON_COMPLETE, Source
from firesteel.testing.programs.program import Node, Program
from firesteel.testing.programs.running.faults import BATCH_POINTS, EPOCH_POINTS, POINTS, STORAGE, TASKS, Fault
from firesteel.testing.programs.running.in_flight import IN_FLIGHT
from firesteel.testing.programs.running.ways import Action, Phase, Way

__all__ = ["draw_way"]

_MAX_FAULTS = 3
_SLOW_SHARE = 0.25
"""How many runs have a slow function."""
_BACKLOG_SHARE = 0.6
"""How many runs of programs that do not end go back to a checkpoint with records in flight."""
_LARGE_VOLUME = 1000
"""With so many records, an epoch takes more of them: else there would be too many epochs."""


def draw_way(program: Program, seed: int | str, *, kills: bool = False) -> Way:
    """Draws a way to run a program: the same one for the same program and seed.

    With ``kills`` the processes of slots may be killed; they must not be this one.
    """
    rng = random.Random(f"way {seed}")
    executions = ["pipelined"] * 6 + ["epochs"] * 2
    if program.ends and all(kind.batchable for kind in program.types().values()):
        executions += ["batch"] * 2
    phase = _draw_phase(rng, program, rng.choice(executions))
    if phase.execution == "batch":
        return Way((replace(phase, checkpoint_ms=None),), _draw_faults(rng, program, [phase], kills=kills), str(seed))
    if not program.ends:
        if rng.random() < _BACKLOG_SHARE:
            return _draw_backlog(rng, program, phase, str(seed))
        phase = replace(phase, checkpoint_ms=phase.checkpoint_ms or _checkpoint_ms(program))
    if not phase.takes_checkpoints:
        return Way((phase,), (), str(seed))
    phases = [phase]
    for _ in range(rng.choices((0, 1, 2), (6, 3, 1))[0]):
        phases[-1] = replace(phases[-1], stop_after=rng.choice((0, 1, 2, 4)))
        following = _draw_phase(rng, program, rng.choice(("pipelined", "pipelined", "epochs")))
        phases.append(replace(following, checkpoint_ms=following.checkpoint_ms or _checkpoint_ms(program)))
    phases = [replace(one, actions=_draw_actions(rng, one)) for one in phases]
    return Way(tuple(phases), _draw_faults(rng, program, phases, kills=kills), str(seed))


def _draw_backlog(rng: random.Random, program: Program, phase: Phase, seed: str) -> Way:
    """Draws a slow function whose input is in flight when a checkpoint is taken to which the job then goes back.

    Only programs that do not end show whether event time continues from there: its end would hide errors.
    """
    interval = _checkpoint_ms(program)
    phase = replace(phase, execution="pipelined", unaligned=True, aligned_timeout_ms=0, checkpoint_ms=interval)
    places = _places(program)
    flight = _draw_flight(rng, program) if rng.random() < 0.7 else None
    behind = _places_behind_idle(program) if flight is not None and flight.holds == "idle" else []
    slow = rng.choice(behind if behind and rng.random() < 0.7 else places)
    places.remove(slow)
    pace = (1, 16) if program.volume >= _LARGE_VOLUME else rng.choice(((20, 16), (12, 4)))
    faults = [Fault("slow", slow, pace[0], every=pace[1])]
    if flight is not None:
        faults.append(flight)
    elif places:
        faults.append(Fault("user", rng.choice(places), rng.choice((1, 3, 10)), restores=True))
    return Way((phase,), tuple(faults), seed)


def _draw_flight(rng: random.Random, program: Program) -> Fault:
    """Draws a failure that leads back to a checkpoint with something in flight."""
    sources = [node for node in program.nodes if isinstance(node, Source)]
    place = f"{rng.choice([node for node in sources if not node.bounded] or sources).id}.{ON_COMPLETE}"
    idle = any(kind.idle for kind in program.types().values())
    holds = "idle" if idle and rng.random() < 0.6 else rng.choice(IN_FLIGHT)
    times = 5 if holds == "idle" and program.volume < _LARGE_VOLUME else rng.choice((1, 2))
    return Fault("flight", place, times, holds=holds)


def _places_behind_idle(program: Program) -> list[str]:
    """Returns the functions of nodes that read a stream that becomes idle, and need its watermarks."""
    types = program.types()
    readers = [node for node in program.nodes if node.waits_for_time and any(types[ref].idle for ref in node.inputs)]
    return [place for node in readers for place in _places_of(node)]


def _checkpoint_ms(program: Program) -> int:
    """Returns how often checkpoints are taken, so that there are some, but not too many."""
    return 10 if program.volume < _LARGE_VOLUME else 50


def _places(program: Program) -> list[str]:
    """Returns where exceptions of user code can be injected."""
    return [place for node in program.nodes for place in _places_of(node)]


def _places_of(node: Node) -> list[str]:
    return [f"{node.id}.{place}" if place else str(node.id) for place in node.functions]


def _draw_phase(rng: random.Random, program: Program, execution: str) -> Phase:
    unaligned = execution == "pipelined" and rng.random() < 0.4
    return Phase(
        execution=execution,
        parallelism=rng.choice((1, 2, 2, 3, 4)),
        backend=rng.choices(("hashmap", "rocksdb"), (4, 1))[0],
        checkpoint_ms=None if rng.random() < 0.1 else rng.choice((1, 1, 2)) * _checkpoint_ms(program),
        unaligned=unaligned,
        aligned_timeout_ms=rng.choice((0, 0, 5)),
        incremental=rng.random() < 0.7,
        chaining=rng.random() < 0.75,
        object_reuse=not program.mutates and rng.random() < 0.3,
        buffer_timeout_ms=rng.choice((0, 5, 100)),
        watermark_ms=rng.choice((1, 2, 5, 200)),
        tolerance=rng.choice((0, 1000)),
        max_records=rng.choice((60, 250)) * (10 if program.volume >= _LARGE_VOLUME else 1),
    )


def _draw_actions(rng: random.Random, phase: Phase) -> tuple[Action, ...]:
    kinds = ["savepoint", "storage"] + (["rescale", "rescale"] if phase.execution == "pipelined" else [])
    actions: list[Action] = []
    while rng.random() < 0.25 and len(actions) < 2:
        kind = rng.choice(kinds)
        value = {"rescale": str(rng.choice((1, 2, 3, 4))), "storage": rng.choice(STORAGE), "savepoint": ""}[kind]
        actions.append(Action(kind, rng.choice((0, 1, 2, 4)), value))
    return tuple(sorted(actions, key=lambda action: action.after))


def _draw_faults(rng: random.Random, program: Program, phases: list[Phase], *, kills: bool) -> tuple[Fault, ...]:
    executions = {phase.execution for phase in phases}
    user = _places(program)
    points = list(BATCH_POINTS if executions == {"batch"} else POINTS)
    if "epochs" in executions:
        points += EPOCH_POINTS
    faults: list[Fault] = []
    if user and rng.random() < _SLOW_SHARE:
        faults.append(Fault("slow", rng.choice(user), 1))
        user.remove(faults[0].place)
    calls = (1, 3, 10, 30, 60) if program.volume < _LARGE_VOLUME else (1, 60, 500, 2000, 4000)
    while rng.random() < 0.55 and len(faults) < _MAX_FAULTS:
        options = ["user"] * 5 + ["point"] * 4
        if executions != {"pipelined"}:
            options += ["task"] * 3
        if kills:
            options += ["kill"] * 4
        kind = rng.choice(options)
        if kind == "task":
            faults.append(Fault(kind, rng.choice(TASKS), rng.choice((1, 2, 3))))
        elif kind == "point":
            faults.append(Fault(kind, rng.choice(points), rng.choice((1, 2, 3, 6, 12))))
        elif user:
            faults.append(
                Fault(kind, rng.choice(user), rng.choice(calls), executions != {"batch"} and rng.random() < 0.6)
            )
            user.remove(faults[-1].place)
    return tuple(faults)
