"""The configuration options of Python: files, archives, requirements and the interpreter of a job, and of workers."""

from __future__ import annotations

from firesteel.config.option import ConfigOptions

__all__ = [
    "ARCHIVES",
    "ARROW_BATCH_SIZE",
    "BUNDLE_SIZE",
    "BUNDLE_TIME",
    "CLIENT_EXECUTABLE",
    "EXECUTABLE",
    "EXECUTION_MODE",
    "FILES",
    "MANAGED_MEMORY",
    "MAP_STATE_BATCH_SIZE",
    "MAP_STATE_READ_CACHE_SIZE",
    "MAP_STATE_WRITE_CACHE_SIZE",
    "METRIC_ENABLED",
    "PROFILE_ENABLED",
    "PYTHON_CHAINING",
    "REQUIREMENTS",
    "STATE_CACHE_SIZE",
    "SYSTEMENV_ENABLED",
]

_key = ConfigOptions.key

FILES = (
    _key("python.files")
    .string_type()
    .no_default_value()
    .with_description(
        "Python files, directories and packages (.zip, .whl, .egg) that the job's functions can import, separated by "
        "commas; the same as -pyfs and add_python_file."
    )
)
ARCHIVES = (
    _key("python.archives")
    .string_type()
    .no_default_value()
    .with_description(
        "Archives (.zip, .jar, .whl, .egg, .tar, .tar.gz, .tgz) that are extracted to the working directory of the "
        "job's Python workers, separated by commas. Each is extracted to a directory with the name after '#', or with "
        "the archive's own name; the same as -pyarch and add_python_archive."
    )
)
REQUIREMENTS = (
    _key("python.requirements")
    .string_type()
    .no_default_value()
    .with_description(
        "A requirements file whose packages are installed for the job, and after '#' a directory of their wheels, "
        "with which pip uses no package index; the same as -pyreq and set_python_requirements."
    )
)
EXECUTABLE = (
    _key("python.executable")
    .string_type()
    .no_default_value()
    .with_description(
        "The Python interpreter that runs the job's functions: a path, a command, or a path in an archive; default: "
        "the interpreter of Spark's Python workers. The same as -pyexec and set_python_executable."
    )
)
CLIENT_EXECUTABLE = (
    _key("python.client.executable")
    .string_type()
    .no_default_value()
    .with_description(
        "Accepted for compatibility, without effect: a program runs in the interpreter of the firesteel command."
    )
)
BUNDLE_SIZE = (
    _key("python.fn-execution.bundle.size")
    .int_type()
    .default_value(100000)
    .with_description("The largest number of records in a bundle for a Python worker.")
)
BUNDLE_TIME = (
    _key("python.fn-execution.bundle.time")
    .int_type()
    .default_value(1000)
    .with_description("The longest time in milliseconds that records wait for a bundle.")
)
ARROW_BATCH_SIZE = (
    _key("python.fn-execution.arrow.batch.size")
    .int_type()
    .default_value(1000)
    .with_description("The largest number of records in an Arrow batch for a Python worker.")
)
MANAGED_MEMORY = (
    _key("python.fn-execution.memory.managed")
    .boolean_type()
    .default_value(True)
    .with_description("Whether Python workers use managed memory.")
)
EXECUTION_MODE = (
    _key("python.execution-mode")
    .string_type()
    .default_value("process")
    .with_description("Whether functions run in processes or in threads of the JVM.")
)
PYTHON_CHAINING = (
    _key("python.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether Python functions are chained.")
)
STATE_CACHE_SIZE = (
    _key("python.state.cache-size")
    .int_type()
    .default_value(1000)
    .with_description("The number of states in the cache of a Python worker.")
)
MAP_STATE_READ_CACHE_SIZE = (
    _key("python.map-state.read-cache-size")
    .int_type()
    .default_value(1000)
    .with_description("The number of map entries that are cached after they were read.")
)
MAP_STATE_WRITE_CACHE_SIZE = (
    _key("python.map-state.write-cache-size")
    .int_type()
    .default_value(1000)
    .with_description("The number of map entries that are cached before they are written.")
)
MAP_STATE_BATCH_SIZE = (
    _key("python.map-state.iterate-response-batch-size")
    .int_type()
    .default_value(1000)
    .with_description("The number of map entries that a Python worker gets at once.")
)
METRIC_ENABLED = (
    _key("python.metric.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether metrics of Python functions are reported.")
)
PROFILE_ENABLED = (
    _key("python.profile.enabled")
    .boolean_type()
    .default_value(False)
    .with_description("Whether Python workers are profiled.")
)
SYSTEMENV_ENABLED = (
    _key("python.systemenv.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether Python workers have the environment variables of their parent.")
)
