"""Writes the reference pages that are made from the code: docs/configuration.md, docs/api.md,
docs/rest_api.md, docs/sql/functions.md and docs/sql/api.md.

Run it after changing an option or the API: ``python scripts/generate_docs.py``. A test fails if it was forgotten.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from option_readers import readers  # noqa: E402
from sql_functions_page import sql_functions_page  # noqa: E402
from table_api_page import table_api_page  # noqa: E402

from firesteel.common.time import Duration  # noqa: E402
from firesteel.config import options  # noqa: E402
from firesteel.config.option import ConfigOption  # noqa: E402
from firesteel.rest.endpoint import Endpoint  # noqa: E402
from firesteel.rest.endpoints import all_endpoints  # noqa: E402
from firesteel.rest.openapi import openapi_document  # noqa: E402

__all__ = ["PAGES", "WITHOUT_EFFECT", "api_page", "configuration_page", "rest_page"]

# ---- configuration --------------------------------------------------------------------------------------------------

WITHOUT_EFFECT = {
    "python.client.executable": "The program runs in the interpreter of the `firesteel` command.",
    **dict.fromkeys(
        (
            "python.execution-mode",
            "python.fn-execution.arrow.batch.size",
            "python.fn-execution.bundle.size",
            "python.fn-execution.bundle.time",
            "python.fn-execution.memory.managed",
            "python.map-state.iterate-response-batch-size",
            "python.map-state.read-cache-size",
            "python.map-state.write-cache-size",
            "python.operator-chaining.enabled",
            "python.state.cache-size",
            "python.systemenv.enabled",
        ),
        "Functions run in the tasks themselves, not in workers beside a JVM.",
    ),
    "python.metric.enabled": "Metrics of functions are always reported.",
    "python.profile.enabled": "Use the flame graphs of the web UI.",
    "execution.attached": "`execute` waits for the job and `execute_async` does not; `firesteel run -d` does not wait.",
    "execution.checkpointing.snapshot-compression": "The files of keyed state are not compressed. RocksDB compresses "
    "its own, see `state.backend.rocksdb.compression.per.level`.",
    "jobmanager.adaptive-scheduler.min-parallelism-increase": "Flink 2 does not use it any more either.",
    "metrics.latency.interval": "Sources send no latency markers.",
    "pipeline.closure-cleaner-level": "Python functions need no closure cleaning.",
    "pipeline.force-avro": "There is no Avro serializer for Python objects.",
    "pipeline.force-kryo": "There is no Kryo serializer for Python objects.",
    "pipeline.generic-types": "Records may be of any type that can be pickled.",
    "task.cancellation.interval": "A task that does not end is interrupted every half second until "
    "`task.cancellation.timeout`.",
}
"""Options that no part reads, by key, with the reason."""

CONFIGURATION = """\
# Configuration

<!-- Made by scripts/generate_docs.py from firesteel/config/*_options.py and the code that reads these options. -->

Keys, values and defaults are Flink's. A program sets them in its `Configuration`:

```python
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment

config = Configuration()
config.set_string("parallelism.default", "2")
config.set_string("execution.buffer-timeout.interval", "10 ms")
env = StreamExecutionEnvironment.get_execution_environment(config)
assert env.get_parallelism() == 2
```

`firesteel run -D KEY=VALUE` sets defaults for a program; settings made by the program take precedence.

## The configuration file

`config.yaml` in the directory `FIRESTEEL_CONF_DIR` has settings for all programs and commands, as in Flink. If the
variable is not set, `~/.config/firesteel/config.yaml` is read, if it exists. Nested and dotted keys mean the same, and
lists and maps are written as in YAML:

```yaml
parallelism.default: 4
execution:
  checkpointing:
    interval: 3 min
    dir: s3://bucket/checkpoints
pipeline.global-job-parameters:
  region: eu
env.log.loggers: {{my.rules: DEBUG}}
```

The file is read by `StreamExecutionEnvironment.get_execution_environment` and by every command: `run`, `cluster start`,
`run-application` and the others. `rest.address` and `rest.port` in it select the cluster. Settings take precedence in
this order:

1. settings that the program makes, in its `Configuration` or with methods such as `set_parallelism`;
2. options of the command line, such as `-p`, and then `-D KEY=VALUE`;
3. the environment variable `FIRESTEEL_SETTINGS`, a JSON object;
4. the configuration file;
5. defaults.

All values are texts, which each option converts. A key without a value is not set. A file that is not valid YAML, or
that sets a key twice, is refused, with the line. Unknown keys are reported as those of a program are. `firesteel info`
and `firesteel cluster start` print the path of the file. Slots do not read it: a job has the settings of its program.

## Keys and values

Keys that begin with `spark.`, such as `spark.master` and `spark.executor.memory`, are passed to Spark when Firesteel
starts it. If a `SparkContext` is already active, Firesteel uses it with its settings.

An unknown key causes a warning with the most similar key. With `pipeline.strict-config: true`, or
`firesteel run --strict-config`, it is an error.

Durations are written as `200 ms`, `5 s`, `1 min` or `PT5S`; sizes as `32 kb` or `1 mb`.

## In effect

The fourth column names the packages of `firesteel` that read an option.

{in_effect}

## Accepted without effect

These options of Flink are accepted and ignored, for the given reason.

{without_effect}
"""


def configuration_page() -> str:
    """The text of docs/configuration.md."""
    read_by = readers()
    in_effect, without_effect = [], []
    for option in options.all_options():
        packages = ", ".join(read_by[option.key])
        if packages:
            in_effect.append((*_option_cells(option), packages, option.description))
        else:
            without_effect.append((*_option_cells(option), WITHOUT_EFFECT.get(option.key, "")))
    return CONFIGURATION.format(
        in_effect=_table(("key", "default", "type", "read by", ""), in_effect),
        without_effect=_table(("key", "default", "type", "why"), without_effect),
    )


def _option_cells(option: ConfigOption[Any]) -> tuple[str, str, str]:
    return f"`{option.key}`", _default(option), option.type_name.partition(" (such as")[0]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines).replace(" --- ", "---")


def _default(option: ConfigOption[Any]) -> str:
    value = option.default
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value.format() if isinstance(value, Duration) else value}`"


# ---- API ------------------------------------------------------------------------------------------------------------

MODULES: dict[str, dict[str, dict[str, list[str]]]] = json.loads(
    (ROOT / "tests/unit/datastream/pyflink_api.json").read_text()
)
"""PyFlink's classes by module, with their methods and parameters."""

NO_JAVA = "there is no Java behind the API"
NOT_USED = "can be imported, not"
"""How a note on a class begins whose methods nobody can call."""

NOTES = {
    # what a method or class differs in, or why it is absent; a class stands for all its methods and inner classes
    "connectors.file_system.FileCompactor": "compacts the files of each subtask by themselves",
    "checkpoint_storage.CustomCheckpointStorage": "can be imported, not created",
    "checkpoint_storage.JobManagerCheckpointStorage": "checkpoints are files; the largest size of a state is no limit",
    **{
        f"connectors.kafka.{name}": "can be imported, not used: use KafkaSource and KafkaSink"
        for name in (
            *("FlinkKafkaConsumer", "FlinkKafkaConsumerBase", "FlinkKafkaProducer", "FlinkKafkaProducerBase"),
            "Semantic",
        )
    },
    "data_stream.DataStream.print": "prints where the program runs, not where the task does",
    "functions.JavaFunctionWrapper": "can be imported, not created: write the function in Python",
    "functions.SourceFunction": "can be imported, not run: implement Source",
    "state_backend.CustomStateBackend": "can be imported, not created",
    "state_backend.EmbeddedRocksDBStateBackend.set_options": "refused: set `state.backend.rocksdb.*`",
    "stream_execution_environment.StreamExecutionEnvironment.add_classpaths": "without effect, with a warning",
    "stream_execution_environment.StreamExecutionEnvironment.add_jars": "without effect, with a warning",
    "stream_execution_environment.StreamExecutionEnvironment.add_source": "takes a Source only",
    "stream_execution_environment.StreamExecutionEnvironment.enable_changelog_state_backend": "without effect, with a "
    "warning: checkpoints are incremental without a changelog",
    "stream_execution_environment.StreamExecutionEnvironment.register_cached_file": "refused: use add_python_archive",
    "stream_execution_environment.StreamExecutionEnvironment.get_default_local_parallelism": "the parallelism of an "
    "environment is 1 unless it was set",
}

INTERNAL = re.compile(
    r"^functions\.(Internal|PassThrough)|^window\.(Min|WindowOperationDescriptor)$|KeyedStream\.AccumulateType$"
    r"|\.(get_java_\w+|register_next_fire_timestamp|create_input|ignore_failures_after_transaction_timeout)$"
)
"""PyFlink's own plumbing, which no program calls; and what only makes sense with Java."""

JAVA = re.compile(r"\.(add_jars|add_classpaths)$|EmbeddedRocksDBStateBackend\.[gs]et_options$")

API = """\
# Flink's API, method by method

<!-- Made by scripts/generate_docs.py from PyFlink's classes and Firesteel's own: change the code, not this page. -->

PyFlink {version}'s `pyflink.datastream`, as far as programs use it, and what `firesteel.datastream` has of it.
**Done**: same name, parameters and behaviour. **Differs**: available, with the differences listed below the table.
**Absent**: not available. `firesteel.common` has every public name of `pyflink.common`. Constructors that take a Java
object in PyFlink are omitted.

{summary}

These modules of PyFlink wrap connectors that are implemented in Java, and are absent: `connectors.cassandra`,
`connectors.dynamic_kafka`, `connectors.elasticsearch`, `connectors.kinesis`, `connectors.pulsar` and
`connectors.rabbitmq`. Importing one raises an error that says what to use instead: a `Source` or `Sink` in Python,
Kafka, or files. `utils`, `java_gateway` and `fn_execution` are internal to PyFlink.

Beyond PyFlink, from Flink's Java API: `WatermarkStrategy.for_generator`, `apply_to_keyed_state` of a
`KeyedBroadcastProcessFunction`, and `DataGeneratorSource` (`firesteel.datastream.connectors.datagen`) with a rate.
Firesteel's own: `JobClient.get_metrics`, `StreamExecutionEnvironment.explain`.

{modules}
"""


def api_page() -> str:
    """The text of docs/api.md."""
    totals: list[tuple[str, list[int]]] = []
    sections = []
    for module, classes in MODULES.items():
        rows: list[str] = []
        notes: dict[str, str] = {}
        counts = [0, 0, 0]
        for name, methods in classes.items():
            if INTERNAL.search(f"{module}.{name}"):
                continue
            columns = _compare(module, name, methods, notes)
            counts = [count + len(column) for count, column in zip(counts, columns, strict=True)]
            rows.append(f"| `{name}` | {' | '.join(', '.join(column) or '–' for column in columns)} |")
        totals.append((module, counts))
        table = "\n".join(["| class | done | differs | absent |", "|---|---|---|---|", *rows])
        explained = "\n".join(f"- `{name}`: {note}" for name, note in notes.items())
        sections.append("\n\n".join([f"## {module}", table, *([explained] if notes else [])]))
    return API.format(version="2.3", summary=_summary(totals), modules="\n\n".join(sections))


def _compare(module: str, name: str, methods: dict[str, list[str]], notes: dict[str, str]) -> tuple[list[str], ...]:
    """The methods of one class that are done, differ and are absent; what is to be said of them goes into the notes."""
    columns: dict[str, list[str]] = {"done": [], "differs": [], "absent": []}
    cls = _find(module, name)
    methods = {
        method: parameters
        for method, parameters in methods.items()
        if not method.startswith("__") and not INTERNAL.search(f"{module}.{name}.{method}")
    }
    note = _note(module, name)
    if cls is None or not methods or (note or "").startswith(NOT_USED):
        status = "absent" if cls is None else "differs" if note else "done"
        columns[status].append("the class")
    else:
        for method, parameters in methods.items():
            full = f"{name}.{method}"
            known = NOTES.get(f"{module}.{full}") or (NO_JAVA if JAVA.search(full) else None)
            if not hasattr(cls, method):
                status = "absent"
            elif known or _note(module, name):
                status = "differs"
            elif _parameters(cls, method)[: len(parameters)] != parameters:
                status, known = "differs", "takes other parameters"
            else:
                status = "done"
            if known:
                notes[full] = known
            columns[status].append(f"`{method}`")
    if note := NOTES.get(f"{module}.{name}"):
        notes[name] = note
    return tuple(columns.values())


def _note(module: str, name: str) -> str | None:
    """What is to be said of a class, or of the class it is in."""
    parts = name.split(".")
    found = (NOTES.get(f"{module}.{'.'.join(parts[:length])}") for length in range(len(parts), 0, -1))
    return next((note for note in found if note), None)


def _find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(f"firesteel.datastream.{module}")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _parameters(cls: type, method: str) -> list[str]:
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [marks.get(p.kind, "") + p.name for p in inspect.signature(getattr(cls, method)).parameters.values()]  # type: ignore[call-overload]
    return names if isinstance(inspect.getattr_static(cls, method), staticmethod) else names[1:]


def _summary(totals: list[tuple[str, list[int]]]) -> str:
    def rows() -> Iterator[str]:
        yield "| module | done | differs | absent |"
        yield "|---|---:|---:|---:|"
        for module, counts in totals:
            if any(counts):
                yield f"| [{module}](#{module.replace('.', '')}) | {' | '.join(map(str, counts))} |"
        whole = [sum(column) for column in zip(*(counts for _, counts in totals), strict=True)]
        yield f"| **all** | {' | '.join(f'**{count}**' for count in whole)} |"

    return "\n".join(rows())


# ---- both -----------------------------------------------------------------------------------------------------------

# ---- REST -----------------------------------------------------------------------------------------------------------

REST = """\
# The REST API

<!-- Made from the declarations in firesteel/rest by scripts/generate_docs.py: change them there. -->

A JobManager serves its REST API over HTTP, by default on port 8081. Paths, fields and status codes are Flink's, so
Flink's command-line client and its dashboard can be used. Endpoints that Flink does not have are marked with ★.

- Every path is also available under `/v1`, and under `rest.path` if it is set.
- Request and response bodies are JSON. Unknown fields are ignored.
- An error has a status of 400 or higher and the body `{{"errors": ["message and hint"]}}`.
- Long-running operations return 202 and a `request-id`, with which the outcome is requested. Outcomes are kept for
  five minutes.
- `GET /openapi.json` returns the OpenAPI description.

The column **who** is the access class. *read* and *change* require the token or a client certificate, except for
processes of the JobManager's own user on its machine; *code* always requires it. See [security](security.md).

```console
$ curl http://localhost:8081/jobs/overview
$ curl -X PATCH http://localhost:8081/jobs/$JOB
$ curl -H "Authorization: Bearer $(cat token)" -F file=@job.py http://localhost:8081/jars/upload
```

From Python:

```python no-run: needs a cluster
from firesteel.rest.client import RestClient
from firesteel.rest.jobs import JOBS_OVERVIEW

with RestClient("http://localhost:8081") as client:
    for job in client.call(JOBS_OVERVIEW).jobs:
        print(job.jid, job.state, job.name)
```

{sections}
"""


def rest_page() -> str:
    """The text of docs/rest_api.md."""
    endpoints = all_endpoints()
    schemas = openapi_document(endpoints)["components"]["schemas"]
    tags = dict.fromkeys(endpoint.tag for endpoint in endpoints)
    sections = []
    for tag in tags:
        chosen = [endpoint for endpoint in endpoints if endpoint.tag == tag]
        rows = ["| | path | who | |", "|---|---|---|---|", *map(_endpoint_row, chosen)]
        bodies = [_request_body(endpoint, schemas) for endpoint in chosen if _has_body(endpoint, schemas)]
        sections.append("\n\n".join([f"## {tag}", "\n".join(rows), *bodies]))
    return REST.format(sections="\n\n".join(sections))


def _endpoint_row(endpoint: Endpoint[Any, Any]) -> str:
    path = f"`{endpoint.path}`" + (" ★" if endpoint.is_ours else "")
    parts = [endpoint.summary]
    parts += [
        f"`?{parameter.name}={'a,b' if parameter.is_list else '…'}`: {parameter.description}"
        for parameter in endpoint.query
    ]
    parts += [f"{status}: {when}" for status, when in endpoint.errors.items()]
    text = "<br>".join(part.replace("|", "\\|").replace("\n", " ") for part in parts)
    return f"| {endpoint.method} | {path} | {endpoint.required_access.value} | {text} |"


def _has_body(endpoint: Endpoint[Any, Any], schemas: dict[str, Any]) -> bool:
    return bool(schemas.get(getattr(endpoint.request, "__name__", ""), {}).get("properties"))


def _request_body(endpoint: Endpoint[Any, Any], schemas: dict[str, Any]) -> str:
    """The fields of a request's body, as a list."""
    schema = schemas[endpoint.request.__name__]
    required = set(schema.get("required", ()))
    kind = "the field `request` of a form" if endpoint.is_upload else "JSON"
    fields = [
        f"- `{name}`: {_schema_type(field)}" + (", required" if name in required else "")
        for name, field in schema["properties"].items()
    ]
    return "\n".join([f"The body of {endpoint.method} `{endpoint.path}` ({kind}):", "", *fields])


def _schema_type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_schema_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_schema_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


PAGES = {
    ROOT / "docs/configuration.md": configuration_page,
    ROOT / "docs/api.md": api_page,
    ROOT / "docs/rest_api.md": rest_page,
    ROOT / "docs/sql/functions.md": sql_functions_page,
    ROOT / "docs/sql/api.md": table_api_page,
}


def main() -> int:
    """Writes the pages, or with --check only says whether they are up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    check = parser.parse_args().check
    pages = {path: make() for path, make in PAGES.items()}
    stale = {path: page for path, page in pages.items() if not path.exists() or path.read_text() != page}
    for path, page in stale.items():
        sys.stdout.write(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}\n")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(page)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
