"""Part files of a FileSink in S3: each a multipart upload until it is committed."""

from __future__ import annotations

import io
import logging
import random
import re
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.compaction import FileCompactor, HeldFile
from firesteel.connectors.files.part_content import ContentFormat
from firesteel.connectors.files.part_store import PartFile, PartStore, check_kind
from firesteel.connectors.files.s3_held_files import HeldObjects, attempt_of
from firesteel.connectors.files.upload_pool import UploadPool
from firesteel.filesystem.s3_uploads import S3Object, S3Uploads, UploadedPart, UploadGoneError, is_s3_path
from firesteel.spi.sink import WriterContext

__all__ = ["InProgressUpload", "PendingUpload", "S3PartFile", "S3PartStore", "abort_uploads"]

FIRST_CLAIM = 9_001
CLAIMS = 1_000
LAST_PART = 8_900
"""After this one a file is full. Some numbers are left for the records that are just being written."""

PARTS_TO_SKIP = 32
MAX_KEY_BYTES = 1024
_NO_KEY = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that a list of keys, which is XML, cannot have."""
CLEANING_TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PendingUpload:
    """A part file all of whose parts are uploaded; completing the upload commits it."""

    path: str
    upload_id: str
    parts: tuple[UploadedPart, ...]
    length: int
    sink_id: str
    superseded: tuple[str, ...] = ()
    """Hidden objects of which it was compacted: they are not needed once it is committed."""


@dataclass(frozen=True)
class InProgressUpload:
    """What a checkpoint keeps of a part file that stays open: the parts uploaded, and the bytes after them."""

    bucket_id: str
    path: str
    upload_id: str | None
    """None as long as all bytes are in ``tail``."""
    parts: tuple[UploadedPart, ...]
    tail: bytes
    created_ms: int
    parallelism: int | None = None


class S3PartStore(PartStore):
    """Part files beneath ``s3://bucket/…``.

    A part file in progress is a multipart upload of the object it is to become: it is not visible. Full parts are
    uploaded in the background as they come. Its steps are those of FileSinkWriter, with these means:

    1. *In progress*: bytes that do not fill a part yet are in memory; there is no upload before the first full part.
    2. *Pending*: what is left becomes the last part, which may be of any size.
    3. ``prepare_commit`` and ``snapshot_state`` wait for the uploads. Of a file that stays open the checkpoint has the
       upload's id, its parts, and the bytes after them: less than one part.
    4. *Finished*: the committer completes the upload of exactly the parts that were recorded.

    After a failure:

    5. The uploads of the checkpoint's pending files are completed, if they are not.
    6. A file that was in progress is written on in the same upload. Parts cannot be copied out of it, so the writer
       takes part numbers that a process of the attempt before, should it still be alive, will not come to: it leaves
       out a random number of them, more than a file of usual size has. Other parts of the upload are not named when
       it is completed, and S3 drops it. A file of which nothing was uploaded becomes a new one.
    7. The object's name has the sink and attempt of an upload. Those of other attempts are aborted with the
       first checkpoint that completes, except those that are continued (6): each of these was *claimed* when it was
       taken over, by a part whose number stands for the attempt and that never becomes a part of the object. Attempts
       are distinguished by their ids: under another leader their numbers begin with 0 again.

    A file that is to be compacted is an upload of a hidden object, see HeldObjects.
    """

    def __init__(
        self, context: WriterContext, base: S3Object, content: ContentFormat, *, compacts: bool = False
    ) -> None:
        self.base_path = str(base)
        self._base = base
        self._content = content
        self._sink_id = context.sink_id
        self._attempt = context.attempt_number
        self._attempt_id = context.attempt_id[:8]
        attempt = f"{context.attempt_number}-{self._attempt_id}{uuid.uuid4().hex[:8]}"
        self.writer_id = f"{context.subtask_index}-{context.sink_id}-{attempt}"
        self.uploads = S3Uploads()
        self.pool = UploadPool(self.uploads, self.base_path)
        self.held = HeldObjects(self.uploads, base, context.sink_id)
        self._compacts = compacts
        self._cleaning: Future[None] | None = None
        self._abandoned: list[S3PartFile] = []
        # otherwise a wrong name would be noticed with the first part that is full or rolled
        self.pool.submit(self.uploads.check_bucket, base)

    def create(self, bucket_id: str, directory: str, name: str, now_ms: int) -> S3PartFile:
        """A part file of which nothing is uploaded yet."""
        return self._create(bucket_id, self.held.root if self._compacts else self._base, directory, name, now_ms)

    def _create(self, bucket_id: str, base: S3Object, directory: str, name: str, now_ms: int) -> S3PartFile:
        target = base.child(directory, name)
        # a file whose bytes do not fill a part is in checkpoints before S3 sees its name
        if len(target.key.encode("utf-8", "surrogatepass")) > MAX_KEY_BYTES or _NO_KEY.search(target.key):
            raise FileWriteError(
                f"The bucket {bucket_id!r:.200} cannot be a path beneath '{self.base_path}'.",
                path=self.base_path,
                hint=f"S3 keys have at most {MAX_KEY_BYTES:,} bytes. Filter out records for which the BucketAssigner "
                "returns a longer path, or shorten the path.",
            )
        return S3PartFile(self, bucket_id, target, self._content, now_ms)

    def resume(self, state: InProgressUpload, directory: str, name: str, now_ms: int) -> S3PartFile:
        """Continues the upload if there is one, otherwise writes its bytes to a new part file."""
        check_kind(state, InProgressUpload, self.base_path)
        target = S3Object.parse(state.path)
        if self.uploads.find(target) is not None:
            raise FileWriteError(
                f"The output file '{target}' was finished after the checkpoint that the job is restored from.",
                path=state.path,
                hint="A later checkpoint has made records visible that would be written a second time: restore it.",
            )
        if state.upload_id is None:
            part = self.create(state.bucket_id, directory, name, now_ms)
            part.go_on(state)
            return part
        try:
            there = self.uploads.part_numbers(target, state.upload_id)
            if any(part.number not in there for part in state.parts):
                raise UploadGoneError(f"'{target}' lacks parts.", path=state.path)
            self.uploads.upload_part(target, state.upload_id, self._claim, b"-")
        except UploadGoneError as error:
            raise FileWriteError(
                f"The upload of '{target}', which was in progress at the checkpoint, no longer exists.",
                path=state.path,
                hint="An older checkpoint than the last may need files that were finished since. A rule of the bucket "
                "that aborts incomplete uploads must leave them for as long as a job can be restored.",
            ) from error
        part = S3PartFile(self, state.bucket_id, target, self._content, now_ms)
        part.go_on(state)
        return part

    def compact(
        self, files: Sequence[HeldFile], directory: str, name: str, compactor: FileCompactor, now_ms: int
    ) -> PendingUpload:
        """Writes the contents of hidden objects to an upload."""
        part = self._create(files[0].bucket_id, self._base, directory, name, now_ms)
        with ExitStack() as streams:
            inputs = [streams.enter_context(self.held.open(file)) for file in files]
            part.fill(lambda output: compactor.compact(inputs, output))
        part.finish()
        superseded = tuple(path for file in files for path in file.superseded)
        return replace(part.to_committable(), superseded=superseded)

    def resume_held(self, state: HeldFile) -> HeldFile:
        """Takes over a hidden object of an earlier attempt."""
        if not is_s3_path(state.path):
            check_kind(state, InProgressUpload, self.base_path)
        return self.held.resume(state)

    def has_room(self) -> bool:
        """False while many parts wait to be uploaded."""
        return self.pool.has_room()

    def check(self) -> None:
        """Raises what an upload has failed with."""
        self.pool.check()

    def delete_earlier_attempts(self, *, of_all_leaders: bool) -> None:
        """Aborts uploads, in the background."""
        self._cleaning = self.pool.run_aside(lambda: self._abort_earlier(of_all_leaders))

    def abandon(self, part: S3PartFile) -> None:
        """The part file goes into no checkpoint, nor ever did."""
        self._abandoned.append(part)

    def close(self) -> None:
        """Stops uploading; aborts what no checkpoint can know of, if that is quickly done."""
        if self._cleaning is not None:
            with suppress(Exception):
                self._cleaning.result(CLEANING_TIMEOUT_S)
        self.uploads.give_up()
        self.pool.close()
        try:
            for part in self._abandoned:
                part.abort()
        except FileWriteError as error:
            _log.warning("An upload is left behind: %s", error)
        self.uploads.close()

    @property
    def sink_id(self) -> str:
        """Which sink this is."""
        return self._sink_id

    @property
    def _claim(self) -> int:
        return FIRST_CLAIM + int(self._attempt_id, 16) % CLAIMS

    def _abort_earlier(self, of_all_leaders: bool) -> None:
        def is_earlier(attempt: int, attempt_id: str) -> bool:
            return attempt_id != self._attempt_id and (of_all_leaders or attempt < self._attempt)

        def is_left(target: S3Object, upload_id: str, attempt: int, attempt_id: str) -> bool:
            return is_earlier(attempt, attempt_id) and self._claim not in self.uploads.part_numbers(target, upload_id)

        try:
            abort_uploads(self.uploads, self._base, self._sink_id, is_left)
            if self._compacts:
                self.held.delete_earlier(is_earlier)
        except FileWriteError as error:
            _log.warning("Uploads of earlier attempts are left beneath %s: %s", self._base, error)


def abort_uploads(
    uploads: S3Uploads,
    base: S3Object,
    sink_id: str,
    condition: Callable[[S3Object, str, int, str], bool] = lambda *_upload: True,
) -> None:
    """Aborts the uploads of a sink, by their names, for which a condition holds.

    It is given the object, the upload's id, and the number and the id of the attempt that has begun it.
    """
    for target, upload_id in list(uploads.uploads_beneath(base)):
        attempt = attempt_of(target.key, sink_id)
        with suppress(UploadGoneError):
            if attempt is not None and condition(target, upload_id, *attempt):
                uploads.abort(target, upload_id)


class S3PartFile(PartFile):
    """A part file whose bytes are parts of an upload, or wait to become one."""

    def __init__(
        self, store: S3PartStore, bucket_id: str, target: S3Object, content: ContentFormat, now_ms: int
    ) -> None:
        self._waiting = _UploadStream(store.uploads.part_bytes, self._upload)
        super().__init__(bucket_id, str(target), self._waiting, content, now_ms)  # type: ignore[arg-type]
        self._store = store
        self._target = target
        self._upload_id: Future[str] | None = None
        self._parts: list[Future[UploadedPart]] = []
        self._next_number = 1
        self._is_recorded = False

    @property
    def is_full(self) -> bool:
        """Whether its parts are as many as S3 takes."""
        return self._next_number > LAST_PART

    def go_on(self, state: InProgressUpload) -> None:
        """Takes over what a checkpoint has of a part file."""
        self.created_ms = state.created_ms
        if state.upload_id is not None:
            self._is_recorded = True
            self._upload_id = _known(state.upload_id)
            self._parts = [_known(part) for part in state.parts]
            self._next_number = state.parts[-1].number + 1 + PARTS_TO_SKIP * random.randint(1, 8)
        self._waiting.restore(sum(part.size for part in state.parts), state.tail)
        self.size = self._waiting.tell()

    def persist(self, parallelism: int) -> InProgressUpload:
        """Waits for the parts that were begun; the rest goes into the checkpoint."""
        self._end_content(finished=False)
        upload_id, parts = self._uploaded()
        return InProgressUpload(
            self.bucket_id, self.path, upload_id, parts, self._waiting.rest(), self.created_ms, parallelism
        )

    def finish(self) -> None:
        """Uploads the rest, in the background."""
        self._end_content(finished=True)
        rest = self._waiting.take_rest()
        if rest or not self._parts:
            self._upload(rest)

    def to_committable(self) -> PendingUpload:
        """The upload, once all its parts are there."""
        upload_id, parts = self._uploaded()
        assert upload_id is not None
        return PendingUpload(self.path, upload_id, parts, self.size, self._store.sink_id)

    @property
    def must_be_held(self) -> bool:
        """Whether the object is a hidden one, which is to be compacted."""
        return self._store.held.contains(self._target)

    @property
    def can_be_held(self) -> bool:
        """Not an upload of a visible object, which was begun before the sink compacted its files."""
        return self.must_be_held

    def fill(self, write: Callable[[BinaryIO], None]) -> None:
        """Has a function write the bytes of the file."""
        write(cast(BinaryIO, self._waiting))
        self.size = self._waiting.tell()

    def to_held(self) -> HeldFile:
        """The hidden object, which is complete then."""
        upload_id, parts = self._uploaded()
        assert upload_id is not None
        uploads = self._store.uploads
        try:
            uploads.complete(self._target, upload_id, parts)
        except UploadGoneError:
            found = uploads.find(self._target)
            if found is None or found.size != self.size:
                raise
        return HeldFile(self.bucket_id, self.path, self.path, self.size, (self.path,))

    def abandon(self) -> None:
        """Leaves the upload to the checkpoint that knows it; if there is none, it can go."""
        super().abandon()
        if not self._is_recorded:
            self._store.abandon(self)

    def abort(self) -> None:
        """Aborts the upload, if it was begun; no part is under way any more."""
        upload = self._upload_id
        if upload is not None and upload.done() and not upload.cancelled() and upload.exception() is None:
            self._store.uploads.abort(self._target, upload.result())

    def _uploaded(self) -> tuple[str | None, tuple[UploadedPart, ...]]:
        """The id of the upload and its parts, once they are there; from now on a checkpoint may know it."""
        if self._upload_id is None:
            return None, ()
        parts = tuple(self._store.pool.results(self._parts))
        self._is_recorded = True
        return self._upload_id.result(0), parts

    def _upload(self, data: bytes) -> None:
        pool = self._store.pool
        if self._upload_id is None:
            self._upload_id = pool.submit(self._store.uploads.create, self._target)
        number, self._next_number = self._next_number, self._next_number + 1
        self._parts.append(pool.submit(self._upload_part, self._upload_id, number, data))

    def _upload_part(self, upload_id: Future[str], number: int, data: bytes) -> UploadedPart:
        # it was submitted before: it has been made, or is being made in another thread
        return self._store.uploads.upload_part(self._target, upload_id.result(), number, data)


class _UploadStream(io.RawIOBase):
    """Gathers bytes until they are enough for a part."""

    def __init__(self, part_bytes: int, upload: Callable[[bytes], None]) -> None:
        self._part_bytes = part_bytes
        self._upload = upload
        self._waiting = bytearray()
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        with memoryview(data) as view:
            length = view.nbytes
        self._waiting += data
        self._position += length
        if len(self._waiting) >= self._part_bytes:
            self._upload(self.take_rest())
        return length

    def restore(self, uploaded: int, rest: bytes) -> None:
        self._waiting[:] = rest
        self._position = uploaded + len(rest)

    def rest(self) -> bytes:
        """What is no part yet."""
        return bytes(self._waiting)

    def take_rest(self) -> bytes:
        """What is no part yet, to become one."""
        rest = bytes(self._waiting)
        self._waiting.clear()
        return rest


def _known(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future
