"""Files in S3 that wait for compaction: hidden objects beneath ``.inprogress/<sink id>``."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import BinaryIO, cast

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.compaction import HeldFile
from firesteel.connectors.files.part_file import KEPT, STAGING
from firesteel.filesystem.s3_uploads import S3Object, S3Uploads

__all__ = ["HeldObjects", "attempt_of"]

READ_BYTES = 8 * 1024 * 1024

_log = logging.getLogger(__name__)


def attempt_of(key: str, sink_id: str) -> tuple[int, str] | None:
    """The number and the id of the attempt of a sink that has begun an object, by its name; None if it is not its."""
    # names of earlier versions have 8 digits that no attempt has for its id
    match = re.search(rf"-{re.escape(sink_id)}-(\d+)-([0-9a-f]{{8}})(?:[0-9a-f]{{8}})?-\d+[^/]*$", key)
    return None if match is None else (int(match[1]), match[2])


class HeldObjects:
    """The hidden objects of one sink.

    An upload cannot be read before it is completed, so that a part file which is to be compacted is an upload of a
    hidden object. Objects that an attempt is restored with are copied to ``kept``. All others of earlier attempts
    belong to no checkpoint when the first one of this attempt is complete.
    """

    def __init__(self, uploads: S3Uploads, base: S3Object, sink_id: str) -> None:
        self._uploads = uploads
        self._sink_id = sink_id
        self.root = base.child(STAGING, sink_id)
        self._kept = self.root.child(KEPT)

    def contains(self, target: S3Object) -> bool:
        """Whether an object is a hidden one, of any sink."""
        return f"/{STAGING}/" in f"/{target.key}"

    def resume(self, state: HeldFile) -> HeldFile:
        """Copies an object of an earlier attempt, so that it is not deleted with the others."""
        source = S3Object.parse(state.path)
        kept = S3Object(source.bucket, f"{self._kept.key}/{source.key.rpartition('/')[2]}")
        is_own = source.key.startswith(f"{self.root.key}/")
        for candidate in (source, kept):
            if self._uploads.find(candidate) is None:
                continue
            if not is_own:  # another job's, which may still need it
                return replace(state, superseded=())
            if candidate != kept:
                self._uploads.copy(candidate, kept)
            return replace(state, path=str(kept), superseded=(str(kept), *state.superseded))
        raise FileWriteError(
            f"The output file '{source}', which waited for compaction at the checkpoint, no longer exists.",
            path=state.path,
            hint=f"Objects beneath '{STAGING}' must stay for as long as a job can be restored. An older checkpoint "
            "than the last may need files that were finished since.",
        )

    def open(self, file: HeldFile) -> BinaryIO:
        """Opens a hidden object for reading."""
        target = S3Object.parse(file.path)
        found = self._uploads.find(target)
        if found is None or found.size != file.length:
            size = "no object" if found is None else f"{found.size} bytes"
            raise FileWriteError(
                f"The output file '{target}' cannot be compacted: it had {file.length} bytes when it was complete, and "
                f"now there is {size}.",
                path=file.path,
                hint=f"Objects beneath '{STAGING}' must stay as they are for as long as a job can be restored.",
            )
        return cast(BinaryIO, io.BufferedReader(_ObjectStream(self._uploads, target, found.size), READ_BYTES))

    def delete_earlier(self, is_earlier: Callable[[int, str], bool]) -> None:
        """Deletes what attempts have left for which a condition holds, given their number and id."""
        kept = f"{self._kept.key}/"
        for target in list(self._uploads.objects_beneath(self.root)):
            attempt = attempt_of(target.key, self._sink_id)
            if attempt is not None and not target.key.startswith(kept) and is_earlier(*attempt):
                self._uploads.delete(target)

    def delete_all(self) -> None:
        """Deletes all hidden objects of the sink."""
        self.delete(str(target) for target in list(self._uploads.objects_beneath(self.root)))

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects that are not needed any more; one that cannot be deleted is left."""
        for path in paths:
            try:
                self._uploads.delete(S3Object.parse(path))
            except FileWriteError as error:
                _log.warning("A file that was compacted is left behind: %s", error)


class _ObjectStream(io.RawIOBase):
    """Reads an object piece by piece, each with a request that is repeated."""

    def __init__(self, uploads: S3Uploads, target: S3Object, size: int) -> None:
        self._uploads = uploads
        self._target = target
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), self._size - self._position)
        if length <= 0:
            return 0
        data = self._uploads.read(self._target, self._position, length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
