"""Ways to run a program: settings, faults, savepoints, rescaling."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.testing.programs.running.faults import Fault

__all__ = ["Action", "Phase", "Way"]


@dataclass(frozen=True)
class Action:
    """Something that is done to a running job, once so many of its checkpoints are complete."""

    kind: str
    """``rescale`` to a parallelism, ``savepoint`` while the job continues, ``storage`` that misbehaves for a moment."""
    after: int = 0
    value: str = ""

    @property
    def label(self) -> str:
        """What coverage counts the action as."""
        return f"storage {self.value}" if self.kind == "storage" else self.kind


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
    tolerance: int = 1000
    """How many checkpoints in a row may fail."""
    max_records: int = 250
    """How many records a subtask reads in an epoch."""
    actions: tuple[Action, ...] = ()
    stop_after: int | None = None
    """After so many checkpoints the job is stopped with a savepoint, and the next phase continues from there."""

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
            "execution.checkpointing.tolerable-failed-checkpoints": str(self.tolerance),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "50",
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
        if self.execution == "batch":
            settings["execution.runtime-mode"] = "BATCH"
        if self.execution == "epochs":
            settings["execution.exchange"] = "spark"
            settings["execution.epoch.idle-interval"] = "2 ms"
            settings["execution.epoch.max-records"] = str(self.max_records)
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

    @property
    def label(self) -> str:
        """What coverage counts the execution as."""
        if self.execution == "pipelined":
            return "unaligned" if self.unaligned else "aligned" if self.takes_checkpoints else "no checkpoints"
        return self.execution


@dataclass(frozen=True)
class Way:
    """How a program is run."""

    phases: tuple[Phase, ...] = (Phase(),)
    faults: tuple[Fault, ...] = ()
    seed: str = ""
