"""The committer of a lake's table: one commit of the table for each checkpoint."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from firesteel.connectors.lakes.changes import last_changes
from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.connectors.lakes.errors import LakeConflictError
from firesteel.connectors.lakes.table import LakeTable
from firesteel.process import fault_points
from firesteel.spi.sink import Committer
from firesteel.types.arrow import require_pyarrow

__all__ = ["CommitRetries", "LakeCommitter"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommitRetries:
    """How often a commit is made again if another writer was faster, and how long to wait before."""

    times: int = 10
    min_wait_s: float = 0.1
    max_wait_s: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failures: int) -> None:
        """Waits before another attempt, longer each time."""
        longest = min(self.min_wait_s * 2**failures, self.max_wait_s)
        self.sleep(random.uniform(longest / 2, longest))


class LakeCommitter(Committer[LakeCommittable]):
    """Makes data files part of a table.

    For each committable:

    1. The table is read anew. If a version of it has the committable's id, nothing is left to do.
    2. The files are added, or the changes applied, in one commit of the table, which has the id.
    3. If another writer has changed the table meanwhile, it begins again with 1. So does who does not know whether 2
       succeeded: 1 tells.
    4. After the first commit of a restarted attempt, files of earlier attempts that no version of the table has are
       deleted: all that was in the checkpoint was committed when the attempt began.
    """

    def __init__(
        self,
        table: LakeTable,
        key: Sequence[str] = (),
        retries: CommitRetries | None = None,
        *,
        overwrites: bool = False,
        by_partition: bool = False,
    ) -> None:
        self._table = table
        self._key = tuple(key)
        self._retries = retries or CommitRetries()
        self._overwrites = overwrites
        self._by_partition = by_partition
        self._last: LakeCommittable | None = None
        self._has_cleaned = False

    def commit(self, committables: Sequence[LakeCommittable]) -> None:
        """Commits what the writers of this attempt prepared."""
        self.recommit(committables)
        if committables and not self._has_cleaned:
            self._has_cleaned = True
            if committables[-1].attempt_number:
                self._remove_left_over(committables[-1])  # 4

    def recommit(self, committables: Sequence[LakeCommittable]) -> None:
        """Commits what was restored; step 1 finds what was committed before."""
        for committable in committables:
            self._last = committable
            self._commit(committable)
            for path in committable.changes:
                with suppress(Exception):  # of no use any more; the next attempt removes it
                    self._table.delete_file(path)

    def finish(self) -> None:
        """Deletes the files of tasks that failed or were run again."""
        if self._last is not None:
            self._remove_left_over(self._last, of_all_attempts=True)

    def close(self) -> None:
        """Disconnects."""
        self._table.close()

    def _commit(self, committable: LakeCommittable) -> None:
        failures = 0
        while True:
            self._table.refresh()
            if self._table.is_committed(committable):  # 1
                return
            try:
                fault_points.reach("lake.commit")
                self._commit_once(committable, failures)  # 2
            except LakeConflictError:  # 3
                if failures >= self._retries.times:
                    raise
                _log.info("%s was changed by another writer; the commit is tried again", self._table.describe())
                self._retries.wait(failures)
                failures += 1
            else:
                fault_points.reach("lake.committed")
                return

    def _commit_once(self, committable: LakeCommittable, failures: int) -> None:
        if self._overwrites:
            self._table.overwrite(committable, self._by_partition)
        elif committable.changes:
            changes = require_pyarrow("Lakes").concat_tables(map(self._table.read_change_file, committable.changes))
            upserts, deleted = last_changes(changes, self._key)
            name = f"{committable.id}-{failures}"
            self._table.apply_changes(committable, self._key, upserts, deleted, name)
        else:
            self._table.append(committable)

    def _remove_left_over(self, committed: LakeCommittable, *, of_all_attempts: bool = False) -> None:
        own = f"{committed.sink_id}-{committed.attempt_id}-"
        try:
            self._table.refresh()
            found = list(self._table.files_named(f"{committed.sink_id}-"))
            found = [path for path in found if of_all_attempts or not path.rpartition("/")[2].startswith(own)]
            used = self._table.referenced(found) if found else set()
            for path in found:
                if path not in used:
                    self._table.delete_file(path)
        except Exception as error:  # noqa: BLE001 - they take room, and do no harm to the table
            _log.warning("Files of earlier attempts in %s cannot be removed: %s", self._table.describe(), error)
