"""``firesteel metrics``: what a job measures."""

from __future__ import annotations

import argparse
import fnmatch
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import fitted_table, print_json
from firesteel.cli.terminal.progress import say
from firesteel.cli.terminal.settings import add_cluster_options
from firesteel.common.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient
    from firesteel.rest.jobs import JobVertex

__all__ = ["MetricNotFoundError", "register", "run"]


class MetricNotFoundError(FiresteelError):
    """A job has no metric with the given name."""


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "metrics",
        help="show a job's metrics",
        description="Lists the metric names of a job's vertices, or shows the latest values of the given metrics per "
        "subtask. Exit codes: 0, 1 if the job or metric does not exist, 3 if no cluster responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="metric names, such as numRecordsInPerSecond; * is a wildcard"
    )
    parser.add_argument("--vertex", metavar="ID", help="only this vertex: id, id prefix, or part of its name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Prints the names of a job's metrics, or the values of some."""
    from firesteel.client.jobs import find_job, find_vertices
    from firesteel.client.metrics import metric_names, metric_values

    job = find_job(client, options.job)
    vertices = find_vertices(client, job.jid, options.vertex)
    available = {vertex.id: metric_names(client, job.jid, vertex.id) for vertex in vertices}
    if not options.names:
        return _list_names(options, vertices, available)
    found = []
    for vertex in vertices:
        wanted = [name for name in available[vertex.id] if _is_wanted(name, options.names)]
        found += [
            {"vertex": vertex.id, "vertex-name": vertex.name, "subtask": subtask, "metric": name, "value": value}
            for subtask, name, value in metric_values(client, job.jid, vertex.id, wanted)
        ]
    if not found:
        raise MetricNotFoundError(
            f"Job '{job.name}' has no such metric: {', '.join(options.names)}.",
            hint="Run firesteel metrics without names to list the available metrics.",
        )
    _say_what_is_missing(options.names, [str(each["metric"]) for each in found])
    if options.json:
        print_json({"metrics": found})
        return 0
    rows = [[each["vertex-name"], each["subtask"], each["metric"], _short(each["value"])] for each in found]
    headers = ["vertex", "subtask", "metric", "value"]
    print("\n".join(fitted_table(headers, rows, shrink="vertex", right=["subtask", "value"])))  # noqa: T201
    return 0


def _list_names(options: argparse.Namespace, vertices: list[JobVertex], available: dict[str, list[str]]) -> int:
    if options.json:
        print_json({"vertices": [{"id": v.id, "name": v.name, "metrics": available[v.id]} for v in vertices]})
        return 0
    for vertex in vertices:
        names = sorted({name.partition(".")[2] for name in available[vertex.id]})
        print("\n".join([f"{vertex.name}  ({vertex.id})", *(f"  {name}" for name in names)]))  # noqa: T201
    return 0


def _say_what_is_missing(patterns: list[str], found: list[str]) -> None:
    missing = [each for each in patterns if not any(_is_wanted(f"0.{name}", [each]) for name in found)]
    if missing:
        say(f"no such metric: {', '.join(missing)}")


def _short(value: str | None) -> str | None:
    """A metric value, rounded for display.

    >>> _short("198.84896198803295"), _short("17"), _short("NaN")
    ('198.849', '17', 'NaN')
    """
    if value is None or "." not in value:
        return value
    try:
        return f"{float(value):.3f}"
    except ValueError:
        return value


def _is_wanted(name: str, patterns: list[str]) -> bool:
    """Whether ``0.numRecordsIn`` or ``0.map.numRecordsIn`` is meant by one of the patterns.

    >>> _is_wanted("0.numRecordsIn", ["numRecords*"]), _is_wanted("0.map.numRecordsIn", ["numRecordsIn"])
    (True, False)
    """
    bare = name.partition(".")[2]
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns for text in (bare, name))
