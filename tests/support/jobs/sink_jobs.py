"""A job of a source of numbers and a sink, driven step by step: what is killed when, the test says."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.spi.sink import Sink
from firesteel.testing import HarnessSnapshot, SinkHarness

__all__ = ["SinkJob", "committables_of"]


class SinkJob:
    """The source goes back to where it was at the checkpoint; a number becomes a record by ``to_record``."""

    def __init__(
        self,
        make_sink: Callable[[], Sink],
        parallelism: int = 1,
        job_id: str = "feed",
        restored: Any = None,
        to_record: Callable[[int], Any] = lambda number: number,
        run_id: str = "",
    ) -> None:
        self.make_sink = make_sink
        self.job_id = job_id
        self.run_id = run_id
        self.to_record = to_record
        self.attempt = 0
        self.position = 0
        self.subtasks: list[SinkHarness] = []
        self.checkpoint_id = 0 if restored is None else restored[1].checkpoint_id
        self.completed = restored
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        sink = self.make_sink()
        self.position, snapshot = self.completed or (0, None)
        self.subtasks = []
        for subtask in range(parallelism):
            harness = SinkHarness(
                pickle.loads(pickle.dumps(sink)),
                subtask=subtask,
                parallelism=parallelism,
                attempt=self.attempt,
                job_id=self.job_id,
                run_id=self.run_id,
            )
            self.subtasks.append(harness)
            harness.initialize_state(snapshot)
            harness.open()

    def restart(self, parallelism: int | None = None) -> None:
        self.kill()
        self.attempt += 1
        self.start(len(self.subtasks) if parallelism is None else parallelism)

    def kill(self) -> None:
        for harness in self.subtasks:
            harness.close()

    def write(self, count: int) -> None:
        for number in range(self.position, self.position + count):
            self.subtasks[number % len(self.subtasks)].process_element(self.to_record(number))
        self.position += count

    def snapshot(self) -> Any:
        self.checkpoint_id += 1
        taken = HarnessSnapshot.combine(*[harness.snapshot(self.checkpoint_id) for harness in self.subtasks])
        return self.position, pickle.loads(pickle.dumps(taken))

    def complete(self, snapshot: Any, notify: int | None = None) -> None:
        """The checkpoint exists from now on, whoever hears of it."""
        self.completed = snapshot
        for harness in self.subtasks if notify is None else self.subtasks[:notify]:
            harness.notify_checkpoint_complete(snapshot[1].checkpoint_id)

    def checkpoint(self) -> None:
        self.complete(self.snapshot())

    def finish(self) -> None:
        for harness in self.subtasks:
            harness.finish()
        self.checkpoint()
        self.kill()

    def run_at_random(
        self, chance: random.Random, steps: int, visible: Callable[[], Sequence[int]], most: int = 6
    ) -> None:
        """Checkpoints that abort, complete unheard, are heard of by some; failures; other parallelisms: all at random.

        After each step, every number that is visible is so once, and belongs to a complete checkpoint. At the end, all
        are visible. At most so many are written at a time.
        """
        for _ in range(steps):
            step = chance.random()
            if step < 0.5:
                self.write(chance.randint(1, most))
            elif step < 0.8:
                snapshot = self.snapshot()
                self.write(chance.randint(0, most // 2))
                if chance.random() < 0.8:
                    self.complete(snapshot, notify=chance.randint(0, len(self.subtasks)))
            else:
                self.restart(chance.randint(1, 3))
            seen = Counter(visible())
            assert not seen or max(seen.values()) == 1
            assert set(seen) <= set(range(self.completed[0] if self.completed else 0))
        self.write(1)
        total = self.position
        self.finish()
        assert visible() == list(range(total))


def committables_of(snapshot: Any) -> list[Any]:
    """What a snapshot has to be committed."""
    return [
        pickle.loads(item)[1]
        for state in snapshot[1].subtasks
        for handle in state.operator
        if handle.name == "_committables"
        for item in pickle.loads(handle.data.data)
    ]
