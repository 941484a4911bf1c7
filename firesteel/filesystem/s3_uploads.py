"""Multipart uploads to S3: an object that is written part by part, and appears when the upload is completed."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from firesteel.common.errors import FileWriteError, InvalidProgramError
from firesteel.config import s3_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import scheme_of
from firesteel.filesystem.stores import current_stores
from firesteel.process import fault_points

__all__ = ["S3Object", "S3Uploads", "StoredObject", "UploadGoneError", "UploadedPart", "is_s3_path"]

MIN_PART_BYTES = 5 * 1024 * 1024
MAX_PART_NUMBER = 10_000

_SCHEMES = ("s3", "s3a", "s3p")
_CONNECT_TIMEOUT_S = 5
_READ_TIMEOUT_S = 20
_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 2.0
_PASSING_CODES = frozenset(
    {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling", "ThrottlingException"}
)
_GONE_CODES = frozenset({"NoSuchUpload", "InvalidPart"})
_NO_WAY_IN = frozenset({"NoSuchBucket", "NoCredentialsError", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_HINTS = {
    "NoSuchBucket": "Create the bucket first: sinks do not create buckets.",
    "AccessDenied": "The credentials need s3:PutObject, s3:GetObject, s3:AbortMultipartUpload, "
    "s3:ListMultipartUploadParts and s3:ListBucketMultipartUploads on the bucket, for compaction also s3:DeleteObject "
    "and s3:ListBucket.",
    "NoCredentialsError": "Set s3.access-key and s3.secret-key, or provide AWS credentials on every host.",
    "InvalidAccessKeyId": "Check s3.access-key.",
    "SignatureDoesNotMatch": "Check s3.secret-key.",
    "EntityTooSmall": "The service does not accept parts as small as s3.upload.min.part.size.",
}


class UploadGoneError(FileWriteError):
    """The upload, or a part of it, is not there (any more): it was completed or aborted."""


class UploadedPart(NamedTuple):
    """A part of an upload as the service has it."""

    number: int
    etag: str
    size: int


class StoredObject(NamedTuple):
    """What is known of a complete object."""

    size: int
    etag: str


@dataclass(frozen=True)
class S3Object:
    """Where an object is, or will be."""

    bucket: str
    key: str

    @staticmethod
    def parse(path: str) -> S3Object:
        """The object, or the prefix of objects, of a path such as ``s3://bucket/key``.

        >>> S3Object.parse("s3://logs/2024//part-0/")
        S3Object(bucket='logs', key='2024/part-0')
        """
        bucket, _, key = path.partition("://")[2].partition("/")
        if not is_s3_path(path) or not bucket:
            raise InvalidProgramError(f"'{path}' does not contain a bucket.", hint="Use s3://bucket/directory.")
        return S3Object(bucket, re.sub("/+", "/", key).strip("/"))

    def child(self, *names: str) -> S3Object:
        """An object beneath this prefix."""
        return S3Object(self.bucket, "/".join(filter(None, (self.key, *names))))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}" if self.key else f"s3://{self.bucket}"


def is_s3_path(path: str) -> bool:
    """Whether a path is one of S3."""
    return scheme_of(path) in _SCHEMES


class S3Uploads:
    """The requests of multipart uploads, for any number of threads; connects when the first one is made.

    A request that fails in a way that may pass (no connection, no answer, 5xx, throttled) is repeated until
    ``s3.upload.timeout`` is over, then reported as a FileWriteError that names the path; all others at once.
    """

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._settings = current_stores().settings if settings is None else settings
        configuration = Configuration.from_dict(self._settings)
        self.part_bytes: int = configuration.get(s3_options.S3_UPLOAD_PART_SIZE)
        self.concurrency: int = configuration.get(s3_options.S3_UPLOAD_CONCURRENCY)
        self.timeout_s: float = configuration.get(s3_options.S3_UPLOAD_TIMEOUT).to_millis() / 1000
        if self.part_bytes < MIN_PART_BYTES:
            raise InvalidProgramError(f"s3.upload.min.part.size must be at least 5 MB, not {self.part_bytes} bytes.")
        if self.concurrency < 1:
            raise InvalidProgramError(f"s3.upload.max.concurrent.uploads must be positive, not {self.concurrency}.")
        self._client: Any = None
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def check_bucket(self, target: S3Object) -> None:
        """FileWriteError if there is no such bucket, or no way in. To list uploads may be forbidden."""
        operation = "list_multipart_uploads"
        try:
            self._request(operation, S3Object(target.bucket, ""), MaxUploads=1)
        except FileWriteError as error:
            cause = error.__cause__
            if isinstance(cause, Exception) and (_describe(cause)[0] in _NO_WAY_IN or _may_pass(cause)):
                raise self._failed(operation, target, cause) from cause

    def create(self, target: S3Object) -> str:
        """Starts an upload; returns its id."""
        answer = self._request("create_multipart_upload", target)
        return str(answer["UploadId"])

    def upload_part(self, target: S3Object, upload_id: str, number: int, data: bytes) -> UploadedPart:
        """Uploads a part, in the place of one that has the number already."""
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        answer = self._request(
            "upload_part", target, UploadId=upload_id, PartNumber=number, Body=data, ContentMD5=digest
        )
        return UploadedPart(number, str(answer["ETag"]), len(data))

    def complete(self, target: S3Object, upload_id: str, parts: Sequence[UploadedPart]) -> None:
        """Makes the object appear, of these parts and no others; UploadGoneError if that cannot be any more."""
        named = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        self._request(
            "complete_multipart_upload",
            target,
            # the answer may have got lost, and not every service reports success for a repeated request
            lambda: self.part_numbers(target, upload_id),
            UploadId=upload_id,
            MultipartUpload={"Parts": named},
        )

    def abort(self, target: S3Object, upload_id: str) -> None:
        """Gives an upload up; one that is gone is as good as aborted."""
        try:
            self._request("abort_multipart_upload", target, UploadId=upload_id)
        except UploadGoneError:
            return

    def uploads_beneath(self, prefix: S3Object) -> Iterator[tuple[S3Object, str]]:
        """The uploads under way whose keys begin with the prefix and a slash: objects and upload ids."""
        start = f"{prefix.key}/" if prefix.key else ""
        marker: dict[str, Any] = {}
        while True:
            answer = self._request("list_multipart_uploads", S3Object(prefix.bucket, ""), Prefix=start, **marker)
            for upload in answer.get("Uploads", ()):
                yield S3Object(prefix.bucket, upload["Key"]), str(upload["UploadId"])
            if not answer.get("IsTruncated"):
                return
            marker = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def part_numbers(self, target: S3Object, upload_id: str) -> set[int]:
        """The numbers of the parts that an upload has; UploadGoneError if it is gone."""
        numbers: set[int] = set()
        marker: dict[str, Any] = {}
        while True:
            answer = self._request("list_parts", target, UploadId=upload_id, **marker)
            numbers.update(int(part["PartNumber"]) for part in answer.get("Parts", ()))
            if not answer.get("IsTruncated"):
                return numbers
            marker = {"PartNumberMarker": int(answer["NextPartNumberMarker"])}

    def find(self, target: S3Object) -> StoredObject | None:
        """What is known of an object; None if there is none."""
        try:
            answer = self._request("head_object", target)
        except _NoSuchKey:
            return None
        return StoredObject(int(answer["ContentLength"]), str(answer.get("ETag", "")))

    def read(self, target: S3Object, start: int, length: int) -> bytes:
        """Reads bytes of a complete object."""
        answer = self._request("get_object", target, Range=f"bytes={start}-{start + length - 1}")
        with answer["Body"] as body:
            return bytes(body.read())

    def copy(self, source: S3Object, target: S3Object) -> None:
        """Copies a complete object within the service."""
        self._request("copy_object", target, CopySource={"Bucket": source.bucket, "Key": source.key})

    def delete(self, target: S3Object) -> None:
        """Deletes an object, if it is there."""
        self._request("delete_object", target)

    def objects_beneath(self, prefix: S3Object) -> Iterator[S3Object]:
        """The complete objects whose keys begin with the prefix and a slash."""
        marker: dict[str, Any] = {}
        while True:
            answer = self._request(
                "list_objects_v2", S3Object(prefix.bucket, ""), Prefix=f"{prefix.key}/" if prefix.key else "", **marker
            )
            for entry in answer.get("Contents", ()):
                yield S3Object(prefix.bucket, entry["Key"])
            if not answer.get("IsTruncated"):
                return
            marker = {"ContinuationToken": answer["NextContinuationToken"]}

    def give_up(self) -> None:
        """No request is repeated from now on."""
        self._closing.set()

    def close(self) -> None:
        """Closes the connections."""
        self.give_up()
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _request(
        self, operation: str, target: S3Object, before_repeating: Callable[[], object] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        place = {"Bucket": target.bucket, **({"Key": target.key} if target.key else {})}
        deadline = time.monotonic() + self.timeout_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                fault_points.reach("s3.request")
                answer: dict[str, Any] = getattr(self._connected(target), operation)(**place, **arguments)
            except FileWriteError:
                raise
            except Exception as error:
                if not _may_pass(error) or time.monotonic() + pause > deadline or self._closing.is_set():
                    raise self._failed(operation, target, error) from error
            else:
                return answer
            self._closing.wait(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _MAX_PAUSE_S)
            if before_repeating is not None:
                before_repeating()

    def _connected(self, target: S3Object) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _new_client(Configuration.from_dict(self._settings), self.concurrency, target)
            return self._client

    def _failed(self, operation: str, target: S3Object, error: Exception) -> FileWriteError:
        code, status, message = _describe(error)
        path = str(target)
        if operation == "head_object" and status == 404:
            return _NoSuchKey(f"There is no {path}.", path=path)
        said = f"{operation} of '{path}' failed: {code}: {message}"
        if code in _GONE_CODES:
            return UploadGoneError(said, path=path)
        hint = _HINTS.get("AccessDenied" if status == 403 and code not in _HINTS else code)
        if _may_pass(error):
            said = f"{said} (repeated for {self.timeout_s:g} s)"
            hint = (
                "Check s3.endpoint and that the service can be reached from this host; s3.upload.timeout is the time."
            )
        return FileWriteError(said, path=path, hint=hint)


class _NoSuchKey(FileWriteError):
    """The object is not there; or its bucket is not, which the service does not distinguish."""


def _describe(error: Exception) -> tuple[str, int, str]:
    response = getattr(error, "response", None) or {}
    code = str(response.get("Error", {}).get("Code", type(error).__name__))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return code, status, str(response.get("Error", {}).get("Message") or error).strip()


def _may_pass(error: Exception) -> bool:
    code, status, _ = _describe(error)
    if status:
        return status >= 500 or status == 429 or code in _PASSING_CODES
    exceptions = importlib.import_module("botocore.exceptions")
    return isinstance(error, (exceptions.ConnectionError, exceptions.HTTPClientError, OSError))


@functools.lru_cache(1)
def _session(pid: int) -> Any:  # noqa: ARG001 - one for each process
    """What is known of the service itself: to read it takes longer than to connect, so that is done only once."""
    return importlib.import_module("botocore.session").get_session()


_making = threading.Lock()


def _new_client(configuration: Configuration, concurrency: int, target: S3Object) -> Any:
    try:
        config_class = importlib.import_module("botocore.config").Config
    except ImportError as error:
        raise FileWriteError(
            f"'{target}' needs a package that is not installed: {error}.",
            path=str(target),
            hint="pip install 'firesteel[s3]', on every host.",
        ) from error
    style = {"addressing_style": "path"} if configuration.get(s3_options.S3_PATH_STYLE_ACCESS) else {}
    config = config_class(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        max_pool_connections=concurrency + 1,
        retries={"mode": "standard", "total_max_attempts": 1},  # S3Uploads repeats by itself
        s3=style,
        # other checksums than Content-MD5 would ask for part numbers without gaps, and many services do not know them
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    # the service's region must have some name; services other than Amazon's mostly do not care which
    region = configuration.get(s3_options.S3_REGION) or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    with _making:  # a session is not for several threads
        return _session(os.getpid()).create_client(
            "s3",
            region_name=region,
            endpoint_url=configuration.get(s3_options.S3_ENDPOINT),
            aws_access_key_id=configuration.get(s3_options.S3_ACCESS_KEY),
            aws_secret_access_key=configuration.get(s3_options.S3_SECRET_KEY),
            aws_session_token=configuration.get(s3_options.S3_SESSION_TOKEN),
            config=config,
        )
