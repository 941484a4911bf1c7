"""Ways to run a program: settings, faults, savepoints, rescaling."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from firesteel.testing.programs.faults import Fault
from firesteel.testing.programs.program import Program

__all__ = ["Phase", "Way", "draw_way"]


@dataclass(frozen=True)
class Phase:
    """One job: from nothing, or from the savepoint that the phase before ended with."""

    execution: str = "pipelined"
    """``pipelined``, ``epochs`` or ``batch``."""
    parallelism: int = 1
    backend: str = "hashmap"
    checkpoint_ms: int | None = None
    unaligned: bool = False
    aligned_timeout_ms: int = 0
    incremental: bool = True
    chaining: bool = True
    object_reuse: bool = False
    buffer_timeout_ms: int = 100
    watermark_ms: int = 2
    stop_after: int | None = None
    """After so many checkpoints the job is stopped with a savepoint, and the next phase goes on from there."""
    rescales: tuple[tuple[int, int], ...] = ()
    """After so many checkpoints the job is rescaled to a parallelism."""

    def settings(self) -> dict[str, str]:
        """Returns the configuration."""
        settings = {
            "parallelism.default": str(self.parallelism),
            "state.backend.type": self.backend,
            "pipeline.operator-chaining.enabled": str(self.chaining).lower(),
            "pipeline.object-reuse": str(self.object_reuse).lower(),
            "pipeline.auto-watermark-interval": f"{self.watermark_ms} ms",
            "execution.buffer-timeout.interval": f"{self.buffer_timeout_ms} ms",
            "execution.checkpointing.incremental": str(self.incremental).lower(),
            "execution.checkpointing.tolerable-failed-checkpoints": "1000",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "50",
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
        if self.execution == "batch":
            settings["execution.runtime-mode"] = "BATCH"
        if self.execution == "epochs":
            settings["execution.exchange"] = "spark"
            settings["execution.epoch.idle-interval"] = "2 ms"
            settings["execution.epoch.max-records"] = "250"
        if self.checkpoint_ms is not None:
            settings["execution.checkpointing.interval"] = f"{self.checkpoint_ms} ms"
        if self.unaligned:
            settings["execution.checkpointing.unaligned.enabled"] = "true"
            settings["execution.checkpointing.aligned-checkpoint-timeout"] = f"{self.aligned_timeout_ms} ms"
        return settings

    @property
    def takes_checkpoints(self) -> bool:
        """Whether a failure leads back to a checkpoint."""
        return self.execution == "epochs" or self.checkpoint_ms is not None


@dataclass(frozen=True)
class Way:
    """How a program is run."""

    phases: tuple[Phase, ...] = (Phase(),)
    faults: tuple[Fault, ...] = ()
    seed: str = ""


def draw_way(program: Program, seed: int | str) -> Way:
    """Draws a way to run a program: the same one for the same program and seed."""
    rng = random.Random(f"way {seed}")
    types = program.types()
    executions = ["pipelined"] * 6 + ["epochs"] * 2
    if program.ends and all(kind.batchable for kind in types.values()):
        executions += ["batch"] * 2
    phase = _draw_phase(rng, program, rng.choice(executions))
    if phase.execution == "batch":
        return Way((replace(phase, checkpoint_ms=None),), _draw_user_faults(rng, program, 0.3), str(seed))
    if not program.ends and not phase.takes_checkpoints:
        phase = replace(phase, checkpoint_ms=10)
    phases = [phase]
    faults: tuple[Fault, ...] = ()
    if phase.takes_checkpoints:
        for _ in range(rng.choices((0, 1, 2), (6, 3, 1))[0]):
            phases[-1] = replace(phases[-1], stop_after=rng.choice((0, 1, 2, 4)))
            following = _draw_phase(rng, program, rng.choice(("pipelined", "pipelined", "epochs")))
            phases.append(replace(following, checkpoint_ms=following.checkpoint_ms or 10))
        faults = _draw_user_faults(rng, program, 0.6)
    return Way(tuple(phases), faults, str(seed))


def _draw_phase(rng: random.Random, program: Program, execution: str) -> Phase:
    unaligned = execution == "pipelined" and rng.random() < 0.4
    return Phase(
        execution=execution,
        parallelism=rng.choice((1, 2, 2, 3, 4)),
        backend=rng.choices(("hashmap", "rocksdb"), (4, 1))[0],
        checkpoint_ms=None if rng.random() < 0.1 else rng.choice((10, 10, 20)),
        unaligned=unaligned,
        aligned_timeout_ms=rng.choice((0, 0, 5)),
        incremental=rng.random() < 0.7,
        chaining=rng.random() < 0.75,
        object_reuse=not program.mutates and rng.random() < 0.3,
        buffer_timeout_ms=rng.choice((0, 5, 100)),
        watermark_ms=rng.choice((1, 2, 5, 200)),
    )


def _draw_user_faults(rng: random.Random, program: Program, probability: float) -> tuple[Fault, ...]:
    places = [
        f"{node.id}.{function}" if function else str(node.id) for node in program.nodes for function in node.functions
    ]
    faults: list[Fault] = []
    while places and rng.random() < probability and len(faults) < 3:
        faults.append(Fault("user", rng.choice(places), rng.choice((1, 3, 10, 30, 60))))
        places.remove(faults[-1].place)
    return tuple(faults)
