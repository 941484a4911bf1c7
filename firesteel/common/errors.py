"""The exception classes of Firesteel."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "CheckpointDirectoryError",
    "CheckpointError",
    "CheckpointStorageError",
    "CorruptStateError",
    "FileWriteError",
    "FiresteelError",
    "FiresteelWarning",
    "HostError",
    "InvalidKeyError",
    "InvalidProgramError",
    "JobCancelledError",
    "JobExecutionError",
    "NotEnoughSlotsError",
    "RecordSerializationError",
    "StateIncompatibleError",
    "TaskFailure",
    "UserCodeError",
]


class FiresteelError(Exception):
    """Base class of all errors; ``hint`` suggests a remedy."""

    is_transient = False
    """Whether a retry may succeed without a change of the program or its configuration."""

    only_gives_up_checkpoint = True
    """If a connector raises it in a checkpoint: whether its data is still complete for the next checkpoint."""

    def __init__(self, message: str, *, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), dict(self.__dict__), self.args)


def _rebuild(cls: type[FiresteelError], fields: dict[str, object], args: tuple[object, ...]) -> FiresteelError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(fields)
    return error


class FiresteelWarning(UserWarning):
    """A setting that is accepted but has no effect, or another condition that a user should check."""


class InvalidProgramError(FiresteelError):
    """The program itself cannot run: found before anything is started."""


class InvalidKeyError(FiresteelError):
    """A key that cannot partition a stream: None, unhashable, NaN, too large, or compared by identity."""


class FunctionSerializationError(InvalidProgramError):
    """An operator that cannot be serialized, with the part that cannot be pickled."""

    def __init__(
        self,
        message: str,
        *,
        operator: str | None = None,
        uid: str | None = None,
        defined_at: str | None = None,
        culprit: str | None = None,
        hint: str | None = None,
    ):
        super().__init__(message, hint=hint)
        self.operator = operator
        self.uid = uid
        self.defined_at = defined_at
        self.culprit = culprit


class RecordSerializationError(FiresteelError):
    """A record that cannot be sent to another task; ``record`` is a preview of it, where there is one."""

    def __init__(self, message: str, *, record: str | None = None, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.record = record


class NotEnoughSlotsError(FiresteelError):
    """The job needs more slots than there are; ``is_final`` if more slots cannot become available."""

    def __init__(
        self, needed: int, available: int, waited_s: float | None, *, hint: str | None = None, is_final: bool = False
    ):
        waited = "" if waited_s is None else f" (waited {round(waited_s, 1):g} s)"
        super().__init__(f"The job needs {needed} slots but the cluster has {available}{waited}.", hint=hint)
        self.needed = needed
        self.available = available
        self.is_final = is_final


class CheckpointError(FiresteelError):
    """A checkpoint or savepoint that failed or was aborted."""


class CheckpointStorageError(FiresteelError):
    """State files that cannot be written, read or deleted; ``path`` is the one concerned."""

    is_transient = True

    def __init__(self, message: str, *, path: str | None = None, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.path = path


class CheckpointDirectoryError(CheckpointStorageError):
    """A path for state that is wrong: no directory, not permitted, or not the same on all hosts."""

    is_transient = False


class CorruptStateError(CheckpointStorageError):
    """A state file that is missing, truncated or modified."""

    is_transient = False


class HostError(FiresteelError):
    """The host of the slots, usually Spark, cannot be used; ``is_gone`` if this is permanent in this process."""

    is_transient = True

    def __init__(self, message: str, *, is_gone: bool = False, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.is_gone = is_gone


class FileWriteError(FiresteelError):
    """A file that cannot be written or committed; ``path`` is the file."""

    only_gives_up_checkpoint = False  # it is unknown how much of it was written

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class StateIncompatibleError(FiresteelError):
    """State that is incompatible with the program; ``operator`` and ``state`` are its names."""

    def __init__(self, message: str, *, operator: str | None = None, state: str | None = None, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.operator = operator
        self.state = state


class JobCancelledError(FiresteelError):
    """The job was cancelled before it finished."""


@dataclass(frozen=True)
class TaskFailure:
    """The failure of a task: location, cause and traceback; picklable."""

    message: str
    error_type: str = ""
    task: str | None = None
    operator: str | None = None
    uid: str | None = None
    subtask: int | None = None
    user_file: str | None = None
    user_line: int | None = None
    user_source: str | None = None
    defined_at: str | None = None
    key: str | None = None
    element: str | None = None
    hint: str | None = None
    traceback: str = ""
    """The task's own traceback, whole; not part of the description."""
    during: str | None = None
    """What the operator was doing, where it was not simply handling an element: ``open()``, ``key_by``, a timer."""
    cause: FiresteelError | None = field(default=None, compare=False, repr=False)
    """The error itself where it arose beside the client: with its own fields."""

    def describe(self) -> str:
        """The failure as lines for a terminal."""
        lines = [": ".join(part for part in (self.error_type, self.message) if part)]
        if self.operator is not None:
            where = f"  operator: {self.operator}"
            if self.uid:
                where += f" (uid {self.uid})"
            if self.subtask is not None:
                where += f", subtask {self.subtask}"
            if self.during:
                where += f", in {self.during}"
            lines.append(where)
        elif self.task:
            lines.append(f"  task:     {self.task}")
        if self.user_file:
            lines.append(f"  at:       {self.user_file}:{self.user_line}")
        if self.user_source:
            lines.append(f"            {self.user_source}")
        if self.defined_at:
            lines.append(f"  defined:  {self.defined_at}")
        if self.key is not None:
            lines.append(f"  key:      {self.key}")
        if self.element is not None:
            lines.append(f"  element:  {self.element}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)


class JobExecutionError(FiresteelError):
    """A job failed; ``failure`` is the failure report of the task, with its traceback."""

    def __init__(self, job_name: str, failure: TaskFailure):
        super().__init__(f"Job '{job_name}' failed.\n{failure.describe()}")
        self.job_name = job_name
        self.failure = failure
        self.__cause__ = failure.cause


class UserCodeError(FiresteelError):
    """Carries a TaskFailure out of a task."""

    def __init__(self, failure: TaskFailure):
        super().__init__(failure.describe())
        self.failure = failure
