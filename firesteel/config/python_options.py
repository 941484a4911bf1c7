"""The configuration options of Python dependencies: files, archives, requirements and the interpreter of a job."""

from __future__ import annotations

from firesteel.config.option import ConfigOptions

__all__ = ["ARCHIVES", "CLIENT_EXECUTABLE", "EXECUTABLE", "FILES", "REQUIREMENTS"]

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
